"""What is kept of an ended study: sealed to this node, for as long as the owner said."""

import datetime as dt

import pytest

from common.crypto.identities.envelope import EnvelopeError
from common.crypto.identities.identity import Identity
from common.privacy.randomness import SeededRandomSource
from common.service.database import Database
from party.journal import CURATOR, Journal, JournalState
from party.retention import Retention

STUDY = bytes(32)
BEGAN, ENDED = "2026-01-01T00:00:00+00:00", "2026-01-02T00:00:00+00:00"
OURS, THEIRS = (Identity.generate(SeededRandomSource(name)) for name in ("ours", "theirs"))


@pytest.fixture
def file(tmp_path):
    with Database(tmp_path / "party.db") as database:
        yield database


def ended(file, *, days, identity=OURS):
    """A journal of one study that ended after two steps."""
    journal = Journal(file, SeededRandomSource("keys"), Retention(file, identity, lambda: days))
    journal.begin(STUDY, name="s", data_digest="d", at=BEGAN)
    keys = {step: journal.step_key(STUDY, step).reveal() for step in (-1, 0)}
    with journal.transaction():
        journal.add_received(STUDY, sequence=1, body=b"a message", effects=(), at=BEGAN)
        journal.end(STUDY, JournalState.FINISHED, reason="", at=ENDED)
    return journal, keys


def bytes_of(file):
    return b"".join(
        bytes(value) if isinstance(value, bytes) else str(value).encode()
        for table in ("step_key", "received", "kept")
        for row in file.rows(f"SELECT * FROM {table}")  # noqa: S608
        for value in row
    )


def test_by_default_nothing_is_kept(file):
    journal, keys = ended(file, days=0)
    assert journal.retention.until(STUDY) is None
    assert journal.retention.keys(STUDY) == {}
    assert journal.inbox.bodies(STUDY, CURATOR) == []
    assert not any(key in bytes_of(file) for key in keys.values())


def test_keys_are_kept_sealed_and_messages_as_they_came(file):
    journal, keys = ended(file, days=30)
    assert {step: key.reveal() for step, key in journal.retention.keys(STUDY).items()} == keys
    assert journal.inbox.bodies(STUDY, CURATOR) == [b"a message"]
    stored = bytes_of(file)
    for key in keys.values():
        assert key not in stored
        assert key.hex().encode() not in stored


def test_another_identity_cannot_open_them(file):
    ended(file, days=30)
    with pytest.raises(EnvelopeError):
        Retention(file, THEIRS, lambda: 30).keys(STUDY)


def test_they_are_wiped_when_their_days_are_over_and_not_before(file):
    journal, _ = ended(file, days=30)
    end = dt.datetime.fromisoformat(ENDED) + dt.timedelta(days=30)
    assert dt.datetime.fromisoformat(journal.retention.until(STUDY)) == end
    journal.wipe_expired(at=(end - dt.timedelta(seconds=1)).isoformat())
    assert journal.retention.keys(STUDY)
    journal.wipe_expired(at=end.isoformat())
    assert journal.retention.until(STUDY) is None
    assert (journal.retention.keys(STUDY), journal.inbox.bodies(STUDY, CURATOR)) == ({}, [])
    assert len(journal.inbox.digests(STUDY, CURATOR)) == 1  # digests outlive the messages


def test_the_owner_can_wipe_them_at_once(file):
    journal, _ = ended(file, days=30)
    journal.wipe_kept(STUDY)
    assert (journal.retention.keys(STUDY), journal.inbox.bodies(STUDY, CURATOR)) == ({}, [])


def test_more_days_than_a_calendar_has_are_a_hundred_years(file):
    journal, _ = ended(file, days=10**9)
    assert journal.retention.until(STUDY).startswith("2125-12-")


def test_a_study_without_answers_leaves_nothing_to_keep(file):
    journal = Journal(file, SeededRandomSource("keys"), Retention(file, OURS, lambda: 30))
    journal.begin(STUDY, name="s", data_digest="d", at=BEGAN)
    journal.end(STUDY, JournalState.REFUSED, reason="", at=ENDED)
    assert journal.retention.until(STUDY) is None
