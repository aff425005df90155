"""Backups of a party's state, and the consequences of restoring one.

A restored ledger has forgotten what was charged since the backup. Three things follow.

- A study that was running when the backup was taken is over: its answers were drawn already,
  perhaps sent, and must not be drawn again. All that was approved for it is charged.
- A study that was approved and had not begun is withdrawn from, for the same reason.
- A study that was approved later is not known here. The node compares itself with the curator at
  every call, and answers nothing until the owner has written such studies off.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

from common.privacy.randomness import OsRandomSource
from common.service import backup
from common.service.backup import About
from common.service.database import Database
from common.service.process import alone_in
from party.journal import Journal, JournalState, StudyRecord
from party.ledger import Ledger, LedgerCharge
from party.owner.decisions import Approvals, OwnerDecision
from party.settings import PartySettings
from party.state import STATE

_STEP = "restored from a backup"


def back_up(settings: PartySettings, out: Path, *, at: str, software: str) -> About:
    """Copy the state of a node, which may be running; LocalError if it is damaged."""
    with backup.snapshot(settings.folder / STATE) as copy:
        with Database(copy) as database:
            ledger = Ledger(database)
            ledger.verify()
            head = ledger.head()
        return backup.write(copy, out=out, role="party", at=at, software=software, head=head)


def restore(settings: PartySettings, file: Path, about: About, *, at: str) -> list[StudyRecord]:
    """Put a copy into the folder of a node that does not run; return the studies that it ends.

    Raises:
        InputError: the node runs, the folder has a state that can be read, or the copy is damaged.
        LocalError: the ledger in the copy was tampered with.
    """
    with (
        alone_in(settings.folder, service="node of this party"),
        backup.restored(file, about, settings.folder) as copy,
        Database(copy) as database,
    ):
        Ledger(database).verify()
        return _end_running(database, about, at=at)


def _end_running(database: Database, about: About, *, at: str) -> list[StudyRecord]:
    approvals, ledger = Approvals(database), Ledger(database)
    journal = Journal(database, OsRandomSource())
    running = [record for record in journal.studies() if record.state is JournalState.RUNNING]
    over = {record.study for record in journal.studies()} - {record.study for record in running}
    reason = f"restored from the backup of {about.taken_at}"
    with database.transaction():
        for record in running:
            decision = approvals.decision(record.study)
            approved = Fraction(0) if decision is None else decision.epsilon
            _charge_rest(ledger, record, approved, about, at=at)
            journal.end(record.study, JournalState.REFUSED, reason=reason, at=at)
        for study in set(approvals.studies()) - over:
            decision = approvals.decision(study)
            if decision is not None and decision.approved:
                no = OwnerDecision(approved=False, reason=reason, decided_at=at)
                approvals.decide(study, no)
    return running


def _charge_rest(
    ledger: Ledger, record: StudyRecord, approved: Fraction, about: About, *, at: str
) -> None:
    """Charge all that a study was approved for: what left since the backup is not known.

    Under a promise with a delta the whole epsilon is charged again, as pure epsilon: a difference
    of two epsilons says too little about the rho that may be missing.
    """
    study = record.study.hex()
    paid = [entry.charge for entry in ledger.entries() if entry.charge.study == study]
    concentrated = any(charge.delta for charge in paid)
    rest = approved if concentrated else approved - ledger.spent(study)
    if rest <= 0:
        return
    charge = LedgerCharge(
        study=study, study_name=record.name, step=f"{_STEP} of {about.taken_at}",
        mechanism="what may have left since the backup", epsilon=rest,
        rows_per_person=max((charge.rows_per_person for charge in paid), default=0),
        owners_per_person=max((charge.owners_per_person for charge in paid), default=1),
    )  # fmt: skip
    ledger.charge(charge, None, at)
