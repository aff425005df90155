"""A party vouches only for the study it approved, the results it saw and the epsilon it paid."""

import sys
from dataclasses import replace
from fractions import Fraction

import pytest

from common.exchanges.commitments import COMMITMENTS
from common.privacy.randomness import SeededRandomSource
from common.service.database import Database
from common.study.commitments import Commitments, TableCommitment, framed_tables
from common.study.messages import ResultPublished, StepMessage, StudyFinished
from common.wire import codec
from party.countersigning import Records, reasons_against
from party.journal import Journal, JournalState
from party.ledger import Caps, Ledger, LedgerCharge
from party.owner.decisions import Approvals, OwnerDecision
from tests.harness.run_script import random_tables, study_of

STUDY = study_of(random_tables((2, 3), (40, 50)))
RESULTS = [b"\x01" * 16, b"\x02" * 16]
NOW = "2026-01-01T00:00:00+00:00"
PRIVACY = {"exact": {"parties_paid": {"p0": "3/4"}}}


class Books:
    """A party's file after a study."""

    def __init__(self, path):
        file = Database(path)
        self.approvals = Approvals(file)
        self.journal = Journal(file, SeededRandomSource("books"))
        self.ledger = Ledger(file)
        self.file = file

    def approve(self, *, approved=True):
        self.approvals.decide(
            STUDY.digest,
            OwnerDecision(
                approved=approved, epsilon=Fraction(1), reason="", decided_by="owner",
                decided_at=NOW,
            ),
        )  # fmt: skip

    def attend(self, *, results=RESULTS, ending=JournalState.FINISHED):
        digest = STUDY.digest
        self.journal.begin(digest, name=STUDY.name, data_digest="x", at=NOW)
        messages = [
            ResultPublished(study=digest, step=step, result=result)
            for step, result in enumerate(results)
        ]
        messages.append(StudyFinished(study=digest))
        for number, message in enumerate(messages, start=1):
            body = codec.TO_PARTY.encode(message)
            with self.journal.transaction():
                self.journal.add_received(digest, sequence=number, body=body, effects=[], at=NOW)
        self.journal.end(digest, ending, reason="", at=NOW)

    def pay(self, epsilon):
        charge = LedgerCharge(
            study=STUDY.digest.hex(), study_name=STUDY.name, step="margins", mechanism="m",
            epsilon=epsilon,
        )  # fmt: skip
        self.ledger.charge(charge, Caps(per_study=Fraction(9), in_total=Fraction(9)), NOW)

    def reasons(self, *, results=RESULTS, privacy=PRIVACY):
        return reasons_against(
            STUDY, Records(self.approvals, self.journal, self.ledger), party="p0",
            results=results, privacy=privacy,
        )  # fmt: skip


@pytest.fixture
def books(tmp_path):
    made = Books(tmp_path / "party.db")
    yield made
    made.file.close()


def test_what_we_approved_saw_and_paid_is_vouched_for(books):
    books.approve()
    books.attend()
    books.pay(Fraction(3, 4))
    assert books.reasons() == []


@pytest.mark.parametrize(
    ("results", "privacy", "why"),
    [
        ([RESULTS[0]], PRIVACY, None),  # fewer: whether the study has more steps is verified before
        ([RESULTS[1], RESULTS[0]], PRIVACY, "not those that were published to us"),
        ([RESULTS[0], b"\x03" * 16], PRIVACY, "not those that were published to us"),
        ([*RESULTS, b"\x03" * 16], PRIVACY, "not those that were published to us"),
        (RESULTS, {"exact": {"parties_paid": {"p0": "1/2"}}}, "our ledger has epsilon 3/4"),
        (RESULTS, {}, "our ledger has epsilon 3/4"),
    ],
)
def test_other_results_or_another_price_are_not(books, results, privacy, why):
    books.approve()
    books.attend()
    books.pay(Fraction(3, 4))
    reasons = books.reasons(results=results, privacy=privacy)
    assert reasons == [] if why is None else why in reasons[0]


def test_a_study_that_we_declined_or_never_decided_about_is_not(books):
    assert books.reasons() == ["we did not approve this study"]
    books.approve(approved=False)
    assert books.reasons() == ["we did not approve this study"]


def test_a_study_that_we_withdrew_from_is_not(books):
    books.approve()
    books.approve(approved=False)
    assert books.reasons() == ["we withdrew from this study"]


def test_a_study_that_did_not_end_well_for_us_is_not(books):
    books.approve()
    assert books.reasons() == ["we did not take part in this study to its end"]
    books.attend(ending=JournalState.ABORTED)
    assert books.reasons() == ["we did not take part in this study to its end"]


def told(study, tables, contributions):
    """What a curator publishes in a study with commitments."""
    payload = (framed_tables(tables),)
    yield StepMessage(study=study.digest, step=0, round=COMMITMENTS, payload=payload)
    for step, result in enumerate(RESULTS):
        yield ResultPublished(
            study=study.digest, step=step, result=result, contributions=contributions[step]
        )
    yield StudyFinished(study=study.digest)


@pytest.mark.parametrize("change", ["nothing", "table", "contribution", "none"])
def test_other_commitments_than_were_published_to_us_are_not_vouched_for(
    books, monkeypatch, change
):
    study = replace(STUDY, commitments=True)
    monkeypatch.setattr(sys.modules[__name__], "STUDY", study)
    tables = {name: TableCommitment(bytes(32), bytes(64)) for name in study.parties}
    contributions = ((b"a" * 32, b"b" * 32), (b"c" * 32, b"d" * 32))
    books.approve()
    books.journal.begin(study.digest, name=study.name, data_digest="x", at=NOW)
    for number, message in enumerate(told(study, tables, contributions), start=1):
        body = codec.TO_PARTY.encode(message)
        with books.journal.transaction():
            books.journal.add_received(study.digest, sequence=number, body=body, effects=[], at=NOW)
    books.journal.end(study.digest, JournalState.FINISHED, reason="", at=NOW)
    books.pay(Fraction(3, 4))
    if change == "table":
        tables = {**tables, "p0": TableCommitment(b"x" * 32, bytes(64))}
    elif change == "contribution":
        contributions = ((b"x" * 32, b"b" * 32), contributions[1])
    released = None if change == "none" else Commitments(tables, contributions)
    reasons = reasons_against(
        study, Records(books.approvals, books.journal, books.ledger), party="p0",
        results=RESULTS, privacy=PRIVACY, commitments=released,
    )  # fmt: skip
    if change == "nothing":
        assert reasons == []
    else:
        assert "not those that were published to us" in reasons[0]
        assert "commitments" in reasons[0]
