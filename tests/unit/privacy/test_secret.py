"""A secret is seen when it is asked for, and in no other way."""

import copy
import logging
import pickle

import pytest

from common.privacy.secret import Secret

KEY = b"0123456789abcdef"


@pytest.mark.parametrize("shown", [repr, str, "{}".format, "{:>40}".format, "%r".__mod__])
def test_no_text_has_it(shown):
    assert "0123" not in shown(Secret(KEY))
    assert "Secret(bytes)" in shown(Secret(KEY))
    assert "0123" not in repr([Secret(KEY)])


def test_no_log_and_no_error_has_it(caplog):
    logging.getLogger("x").error("drawn: %s", Secret(KEY))
    assert "0123" not in caplog.text
    with pytest.raises(ValueError, match="Secret") as failed:
        raise ValueError(Secret(KEY))
    assert "0123" not in repr(failed.value)


def test_it_is_not_pickled():
    with pytest.raises(TypeError, match="not written down"):
        pickle.dumps(Secret(KEY))


def test_a_copy_of_its_holder_shares_it():
    secret = Secret(KEY)
    assert copy.deepcopy([secret])[0] is secret


def test_it_is_seen_when_asked_for():
    assert Secret(KEY).reveal() == KEY
    assert not hasattr(Secret(KEY), "__dict__")
