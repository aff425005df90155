"""Nodes that run while their owner edits the policy: the policy on disk counts, over gRPC."""

from fractions import Fraction

import pytest

from common.crypto.sums.plan import Aggregation
from common.service.process import system_clock
from curator.app import propose
from curator.store.records import StudyState
from tests.harness.process_consortium import NAMES, ProcessConsortium


@pytest.fixture
def consortium(tmp_path):
    made = ProcessConsortium(tmp_path)
    made.write_policy(per_study=1, in_total=9)  # the study costs 8
    for who in ("curator", *NAMES):
        made.start(who)
    made.wait_for(lambda: all("the curator is reached" in made.log(name) for name in NAMES))
    yield made
    made.stop()


def offer(consortium):
    consortium.study = consortium.new_study(
        "processes", epsilon=Fraction(8), method="dp-subn", aggregation=Aggregation.MASKED
    )
    propose(consortium.settings, consortium.study, clock=system_clock)


def test_a_raised_cap_counts_without_a_restart_and_a_broken_file_does_not(consortium):
    policy = consortium.folder / "policy.toml"
    policy.write_text("[budget\n")
    consortium.wait_for(
        lambda: all("counts until the file is mended" in consortium.log(name) for name in NAMES)
    )
    consortium.write_policy(per_study=8, in_total=9)
    offer(consortium)
    consortium.check_end()
    for name in NAMES:
        assert "epsilon_per_study 1 -> 8" in consortium.log(name)


@pytest.mark.slow
def test_a_lowered_cap_counts_without_a_restart(consortium):
    consortium.write_policy(per_study=8, in_total=9)
    consortium.write_policy(per_study=8, in_total=7)
    offer(consortium)
    consortium.wait_for(lambda: consortium.record().state is StudyState.REFUSED)
    assert "the owner's policy does not allow this study" in consortium.record().cause
