"""The policy on disk counts: a change is read, half a file is waited for, a broken one is not."""

import datetime as dt
import threading
import time
from fractions import Fraction

import pytest

from common.errors import InputError
from party.owner.policy_file import PolicyFile

BUDGET = '[budget]\nepsilon_per_study = "{}"\nepsilon_in_total = "4"\n'
NOW = dt.datetime(2026, 11, 18, 10, tzinfo=dt.UTC)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "policy.toml"
    path.write_text(BUDGET.format(1))
    return path


def policies(path):
    return PolicyFile(path, lambda: NOW)


def test_a_change_counts_and_is_told(file, caplog):
    policy = policies(file)
    file.write_text(BUDGET.format(2) + "[study]\nmin_parties = 3\n")
    assert policy.current.epsilon_per_study == 2
    assert policy.current.min_parties == 3
    assert "epsilon_per_study 1 -> 2, min_parties 2 -> 3" in caplog.text
    assert "epsilon 2 a study, 4 in total" in policy.words
    assert policy.complaint == ""


@pytest.mark.parametrize("text", ["[budget", BUDGET.format("much"), "", None])
def test_a_broken_file_leaves_the_policy_as_it_was_and_says_so(file, caplog, text):
    policy = policies(file)
    if text is None:
        file.unlink()
    else:
        file.write_text(text)
    assert policy.current.epsilon_per_study == 1
    assert policy.current.epsilon_per_study == 1
    assert [record.levelname for record in caplog.records] == ["ERROR"], "once, and loudly"
    assert "as it was read on 2026-11-18 at 10:00:00 UTC counts until" in policy.complaint
    file.write_text(BUDGET.format(3))
    assert policy.current.epsilon_per_study == 3
    assert policy.complaint == ""


def test_half_a_file_is_not_taken_for_a_policy_with_fewer_limits(file):
    policy = policies(file)
    file.write_text(BUDGET.format(3))  # the limits of [study] are still to come

    def go_on():
        time.sleep(0.2)
        with file.open("a") as stream:
            stream.write("[study]\nmin_parties = 5\n")

    writer = threading.Thread(target=go_on)
    writer.start()
    assert policy.current.min_parties == 5
    writer.join()


def test_a_node_does_not_start_with_a_broken_policy(file):
    file.write_text("[budget")
    with pytest.raises(InputError, match=r"policy\.toml"):
        policies(file)


def test_caps_follow_the_file(file):
    policy = policies(file)
    assert policy.current.caps.per_study == Fraction(1)
    file.write_text(BUDGET.format("1/2"))
    assert policy.current.caps.per_study == Fraction(1, 2)
