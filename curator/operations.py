"""Studies from the curator operator's side: parties as a command line names them, and states."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from common.crypto.key_files import load_public_identity
from common.errors import InputError
from common.study.document import Member
from common.study.ids import StudyId
from curator.live_role import DECLARED, declaration
from curator.store.records import Record, StudyState
from curator.store.store import Store

MOST_REASON = 500
_LOOK_EVERY_S = 0.2


def member_of(written: str) -> Member:
    """A party from NAME:ROWS:FILE, where the file is its identity.pub."""
    parts = written.split(":", 2)
    if len(parts) != 3 or not parts[1].isdecimal():
        raise InputError(f"--party {written!r}: expected NAME:ROWS:FILE, as north:10000:north.pub")
    name, rows, path = parts
    return Member(name=name, rows=int(rows), identity=load_public_identity(Path(path)))


def not_approved_by(store: Store, record: Record) -> tuple[str, ...]:
    """The parties whose approval a study waits for."""
    if record.state is not StudyState.WAITING:
        return ()
    approved = store.approvals(record.study)
    return tuple(name for name in store.members(record.study) if name not in approved)


def last_calls(store: Store, record: Record) -> dict[str, str]:
    """When each party of a study that is not over called last; empty for one that never did."""
    if record.state.over:
        return {}
    seen = {name: party.seen_at for name, party in store.parties().items()}
    return {name: seen.get(name, "") for name in store.members(record.study)}


def declared(store: Store, study: StudyId) -> dict[str, str]:
    """The parties that a study under way goes on without, and what is known about why."""
    return dict(map(declaration, store.inbox.bodies(study, DECLARED)))


def abort(
    store: Store,
    record: Record,
    reason: str,
    *,
    at: str,
    wait_s: float,
    sleep: Callable[[float], None],
) -> Record:
    """Ask the curator to end a study, and wait a while for it to do so; where it stands then.

    The request is in the curator's file: one that runs finds it within a second, one that does not
    ends the study when it is started.

    Raises:
        InputError: the study is over, or the reason cannot be sent.
    """
    if record.state.over:
        raise InputError(f"study {record.name!r} is over: {record.state.value}")
    if not 0 < len(reason) <= MOST_REASON or not reason.isprintable():
        raise InputError(f"--reason: one line of up to {MOST_REASON} characters; parties read it")
    store.ask_to_abort(record.study, reason, at=at)
    for _ in range(round(wait_s / _LOOK_EVERY_S)):
        now = store.record(record.study)
        if now.state.over:
            return now
        sleep(_LOOK_EVERY_S)
    return store.record(record.study)


def declare_missing(
    store: Store,
    record: Record,
    owner: str,
    *,
    at: str,
    wait_s: float,
    sleep: Callable[[float], None],
) -> bool:
    """Ask the curator to go on without an owner, and wait a while; whether it has by then."""
    study = store.study(record.study)
    names = [member.name for member in study.members]
    if owner not in names:
        raise InputError(
            f"study {record.name!r}: it has no party {owner!r}. Its parties: {', '.join(names)}"
        )
    if not study.may_miss:
        raise InputError(
            f"study {record.name!r}: it needs all of its owners, so none can be declared missing. "
            "End it with `parley curator study abort`, then write it again with `parley curator "
            f"study reform --without {owner}`"
        )
    if record.state is not StudyState.RUNNING:
        raise InputError(
            f"study {record.name!r}: it does not run ({record.state.value}), so no owner is missing"
        )
    store.ask_to_miss(record.study, owner, at=at)
    for _ in range(round(wait_s / _LOOK_EVERY_S)):
        if (record.study, owner) not in store.asked_to_miss():
            return True
        sleep(_LOOK_EVERY_S)
    return False


def find_record(store: Store, wanted: str) -> Record:
    """The one study of that name or digest; InputError if there are none or more."""
    found = [
        record
        for record in store.records()
        if record.name == wanted or record.study.hex().startswith(wanted.lower())
    ]
    if len(found) != 1:
        many = "more than one study" if found else "no study"
        raise InputError(f"{many} here is {wanted!r}; see `parley curator study list`")
    return found[0]
