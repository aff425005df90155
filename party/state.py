"""The file of a party's ledger, journal and decisions: where it begins, and that it is not lost.

A lost ledger must not look like a fresh one: the caps of the policy would count from zero again.
So a mark beside the keys says that a ledger was begun for them. A command that only reads begins
none; the node and an owner's decisions begin one, unless the mark says that there was one.

The mark is a help and not a proof: a folder of keys that cannot be written, or that is made anew at
every start, keeps none. The curator notices a ledger that lacks studies it knows of
(`party.client.context.require_no_rollback`).
"""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from common.errors import InputError
from common.files import make_private_folder
from common.service import state
from common.service.database import Database, make_private
from common.service.migrations import StateOwner

logger = logging.getLogger(__name__)

STATE = state.FILES[StateOwner.PARTY]
MARK = "ledger-begun.txt"
_ABOUT = (
    "# A ledger was begun for the keys in this folder, in the state folder below. If that ledger\n"
    "# is lost, restore its backup. By this file a lost ledger is noticed: keep it with the keys.\n"
)


def is_there(folder: Path) -> bool:
    """Say whether there is a ledger; InputError if the folder is that of a curator."""
    return state.is_there(folder, StateOwner.PARTY)


def require_not_lost(folder: Path, *, keys: Path) -> None:
    """Refuse a folder without the ledger that was begun for these keys."""
    if not is_there(folder) and (keys / MARK).exists():
        raise InputError(
            f"{folder / STATE}: the ledger of these keys is lost ({keys / MARK} says that there "
            "was one). Put its newest backup in its place with `parley restore FILE`. Only if "
            "there is none, run `parley party join --begin-anew`: what was spent earlier is then "
            "forgotten here and the caps of the policy count from zero, although the rows have "
            "paid already, so lower epsilon_in_total by what was spent"
        )


def open_state(folder: Path, *, keys: Path, begin: bool = False) -> Database:
    """Open the state; with `begin`, make it if these keys never had one, and else refuse."""
    if not is_there(folder):
        require_not_lost(folder, keys=keys)
        if not begin:
            raise InputError(
                f"{folder / STATE}: there is no ledger. It begins with the owner's first decision, "
                "or with `parley party join`. If there was one, restore it: `parley restore FILE`"
            )
        make_private_folder(folder)
    database = state.opened(folder, StateOwner.PARTY)
    if begin and not (keys / MARK).exists():
        _mark(folder, keys=keys)
    return database


def begin_anew(folder: Path, *, keys: Path) -> None:
    """Begin another ledger for keys whose ledger is lost; InputError if it is not."""
    if is_there(folder) or not (keys / MARK).exists():
        raise InputError(
            f"--begin-anew: no ledger is lost: {folder / STATE} is there, or was never begun. "
            "Start without --begin-anew"
        )
    logger.warning(
        "%s: a ledger is begun anew. What was spent earlier is forgotten here: the caps of the "
        "policy count from zero. Lower epsilon_in_total by what was spent", folder / STATE,
    )  # fmt: skip
    make_private_folder(folder)
    with state.opened(folder, StateOwner.PARTY):
        _mark(folder, keys=keys)


@contextmanager
def reading(folder: Path, *, keys: Path) -> Iterator[Database]:
    """Open the state for a look; where none was begun, an empty one that is thrown away."""
    if is_there(folder):
        with open_state(folder, keys=keys) as database:
            yield database
        return
    require_not_lost(folder, keys=keys)
    logger.warning(
        "%s: there is no ledger yet, so nothing counts as spent. If there was one, restore it: "
        "`parley restore FILE`", folder / STATE,
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as scratch, Database(Path(scratch) / STATE) as database:
        yield database


def _mark(folder: Path, *, keys: Path) -> None:
    """Note beside the keys that they have a ledger; a folder that cannot be written has no note."""
    mark = keys / MARK
    try:
        earlier = mark.read_text(encoding="utf-8") if mark.exists() else _ABOUT
        make_private(mark)
        mark.write_text(f"{earlier}{folder.absolute()}\n", encoding="utf-8")
    except OSError as error:
        logger.info(
            "%s: it cannot be written (%s), so a lost ledger is noticed by the curator alone",
            mark, error.strerror,
        )  # fmt: skip
