"""What is kept of ended studies for an audit, if the owner's policy says so (`keep_for_audit`).

At the end of a study its step keys and the messages that it received are wiped. An owner that wants
to be able to show an auditor, later, that its answers follow from its rows must keep both. The keys
are sealed to the node's own identity; the messages hold nothing that was not published, or sealed
to this node. After the days of the policy both are wiped.

Whoever has the identity's key and this file can compute the noise and the masks of this owner's
answers again, and with recorded answers its counts. That is what keeping costs.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Mapping

from common.crypto.identities.envelope import EnvelopeRoute, seal, unseal
from common.crypto.identities.identity import Identity
from common.privacy.secret import Secret
from common.service.database import Database
from common.study.ids import StudyId

_MOST_DAYS = 36_500
_TABLES = """
CREATE TABLE IF NOT EXISTS kept (
    study BLOB PRIMARY KEY REFERENCES study (study),
    sealed BLOB NOT NULL,
    until TEXT NOT NULL
) STRICT;
"""


class Retention:
    """The sealed keys in a party's file. `days` is asked when a study ends; 0 keeps nothing.

    Without an identity nothing is sealed or opened.
    """

    def __init__(
        self, database: Database, identity: Identity | None, days: Callable[[], int]
    ) -> None:
        self._file, self._identity, self._days = database, identity, days
        database.add_tables(_TABLES)

    def keep(self, study: StudyId, keys: Mapping[int, Secret[bytes]], *, at: str) -> bool:
        """Seal the keys of a study, in the caller's transaction; false if nothing is kept."""
        days = min(self._days(), _MOST_DAYS)
        if not days or not keys or self._identity is None:
            return False
        plain = json.dumps({str(step): key.reveal().hex() for step, key in keys.items()}).encode()
        public = self._identity.public
        sealed = seal(plain, _route(study), sender=self._identity, recipient=public)
        until = (dt.datetime.fromisoformat(at) + dt.timedelta(days=days)).isoformat()
        self._file.write("INSERT OR REPLACE INTO kept VALUES (?, ?, ?)", (study, sealed, until))
        return True

    def keys(self, study: StudyId) -> dict[int, Secret[bytes]]:
        """Return the keys of a study by step; empty if none are kept."""
        rows = self._file.rows("SELECT sealed FROM kept WHERE study = ?", (study,))
        if not rows or self._identity is None:
            return {}
        public = self._identity.public
        plain = unseal(bytes(rows[0][0]), _route(study), sender=public, recipient=self._identity)
        return {int(step): Secret(bytes.fromhex(key)) for step, key in json.loads(plain).items()}

    def until(self, study: StudyId) -> str | None:
        """Return how long the keys of a study are kept; None if they are not."""
        rows = self._file.rows("SELECT until FROM kept WHERE study = ?", (study,))
        return str(rows[0][0]) if rows else None

    def due(self, *, at: str) -> list[StudyId]:
        """List the studies whose keys were kept long enough."""
        now = dt.datetime.fromisoformat(at)
        rows = self._file.rows("SELECT study, until FROM kept")
        return [StudyId(study) for study, end in rows if dt.datetime.fromisoformat(end) <= now]

    def forget(self, study: StudyId) -> None:
        """Wipe the keys of a study, in the caller's transaction."""
        self._file.wipe("DELETE FROM kept WHERE study = ?", (study,))


def _route(study: StudyId) -> EnvelopeRoute:
    return EnvelopeRoute(
        study=study, step=0, topic="kept for an audit", sequence=0, sender="node",
        recipient="auditor",
    )  # fmt: skip
