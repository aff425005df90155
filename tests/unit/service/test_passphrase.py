"""Where a passphrase is looked for, and when."""

import pytest

from common.errors import InputError
from common.service.passphrase import VARIABLE, asking, given_passphrase


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "passphrase"
    path.write_text("correct horse\nsecond line\n")
    path.chmod(0o600)
    return path


def test_a_file_that_is_named_wins_over_the_environment(file):
    environment = {VARIABLE: "of the environment"}
    assert given_passphrase(file, environment) == "correct horse"
    assert given_passphrase(None, environment) == "of the environment"
    assert given_passphrase(None, {}) is None


def test_an_empty_file_is_an_empty_passphrase_and_not_none(file):
    file.write_text("")
    assert given_passphrase(file, {VARIABLE: "x"}) == ""


def test_a_file_that_others_can_read_or_that_is_not_there_is_refused(file):
    file.chmod(0o644)
    with pytest.raises(InputError, match="passphrase"):
        given_passphrase(file, {})
    with pytest.raises(InputError, match="absent"):
        given_passphrase(file.parent / "absent", {})


def test_nothing_is_looked_for_before_a_key_asks(file):
    environment = {}
    ask = asking(None, environment)
    with pytest.raises(InputError, match=f"passphrase_file.*{VARIABLE}"):
        ask()
    environment[VARIABLE] = "later"
    assert ask() == "later"
    file.unlink()
    asking(file, {})  # a file that is not there is no matter until then
