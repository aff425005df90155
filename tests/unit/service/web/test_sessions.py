"""A token opens sessions; sessions end; wrong tokens are counted."""

import pytest

from common.errors import InputError, PolicyError
from common.service.web import sessions as module
from common.service.web.sessions import Sessions, token_in


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def sessions(clock):
    return Sessions("the token", now=clock)


def test_only_the_token_opens_a_session(sessions):
    session = sessions.login("the token")
    assert sessions.find(session.key) == session
    for wrong in ("", "the toke", "the token ", "THE TOKEN", "ünicode"):
        assert sessions.login(wrong) is None
    assert sessions.find("") is None
    assert sessions.find(session.csrf) is None


def test_two_sessions_share_no_secret_and_print_none(sessions):
    one, two = sessions.open(), sessions.open()
    assert len({one.key, one.csrf, two.key, two.csrf}) == 4
    assert one.key not in repr(one)
    assert one.csrf not in repr(one)
    assert one.vouches_for(one.csrf)
    assert not one.vouches_for(two.csrf)
    assert not one.vouches_for("")


def test_sessions_end_with_time_or_by_logging_out(sessions, clock):
    old, closed = sessions.open(), sessions.open()
    sessions.close(closed)
    sessions.close(closed)
    assert sessions.find(closed.key) is None
    clock.now += module.LIFE_S
    assert sessions.find(old.key) is None


def test_the_oldest_session_makes_room(sessions):
    made = [sessions.open() for _ in range(module.MOST_SESSIONS + 3)]
    assert [sessions.find(each.key) is not None for each in made] == (
        [False] * 3 + [True] * module.MOST_SESSIONS
    )


def test_after_many_wrong_tokens_even_the_right_one_waits(sessions, clock):
    inside = sessions.open()
    for _ in range(module.MOST_FAILURES):
        assert sessions.login("wrong") is None
    with pytest.raises(PolicyError, match="wait"):
        sessions.login("the token")
    assert sessions.find(inside.key)
    clock.now += module.FAILURES_WITHIN_S
    assert sessions.login("the token")


def fail_often(sessions, address):
    for _ in range(module.MOST_FAILURES):
        assert sessions.login("wrong", address=address) is None


@pytest.mark.parametrize("theirs", ["192.0.2.7", "2001:db8::7", "fe80::1%eth0", "not an address"])
def test_wrong_tokens_of_one_address_do_not_keep_another_out(sessions, theirs):
    fail_often(sessions, theirs)
    with pytest.raises(PolicyError, match="wait"):
        sessions.login("the token", address=theirs)
    assert sessions.login("the token", address="192.0.2.8")
    assert sessions.login("the token", address="2001:db8:0:1::7")


def test_the_addresses_of_one_holder_count_as_one(sessions):
    fail_often(sessions, "2001:db8::1")
    with pytest.raises(PolicyError, match="wait"):
        sessions.login("the token", address="2001:db8::ffff:2")
    fail_often(sessions, "::ffff:192.0.2.1")
    assert sessions.login("the token", address="::ffff:192.0.2.2")


def test_the_memory_of_wrong_tokens_is_bounded(sessions):
    for number in range(module.MOST_ADDRESSES + 5):
        sessions.login("wrong", address=str(number))
    assert len(sessions._failures) == module.MOST_ADDRESSES


def test_the_token_is_made_once_in_a_file_of_its_owner(tmp_path):
    path = tmp_path / "token"
    token = token_in(path)
    assert len(token) >= 43
    assert path.stat().st_mode & 0o777 == 0o600
    assert token_in(path) == token
    assert token_in(tmp_path / "other") != token


def test_a_token_that_others_can_read_is_refused(tmp_path):
    path = tmp_path / "token"
    token_in(path)
    path.chmod(0o640)
    with pytest.raises(InputError, match="open to other users"):
        token_in(path)


@pytest.mark.parametrize("content", [b"", b"short\n", b"\xff" * 50])
def test_a_file_that_is_no_token_is_refused(tmp_path, content):
    path = tmp_path / "token"
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(InputError, match=r"token|read"):
        token_in(path)


def test_a_folder_that_is_missing_is_said(tmp_path):
    with pytest.raises(InputError, match="cannot write"):
        token_in(tmp_path / "nowhere" / "token")
