"""The curator's part in the exchange of seeds: it collects sealed envelopes and hands them on."""

from __future__ import annotations

from collections.abc import Collection

from common.crypto.framing import frame
from common.crypto.sums.agreement import envelopes_in
from common.study.document import Study
from common.study.sums import seed_partners


class SeedRelay:
    """The envelopes of a study's parties for each other (`common.crypto.sums.agreement`)."""

    def __init__(self, study: Study) -> None:
        self._study = study
        self._sealed: dict[tuple[str, str], bytes] = {}  # by sender and recipient

    def take(self, sender: str, payload: bytes) -> None:
        """Take a party's envelopes for its partners.

        Raises:
            RemoteProtocolError: there is not one for each of them; nothing is taken.
        """
        _, recipients = seed_partners(self._study, sender)
        sealed = envelopes_in(payload, count=len(recipients), what=repr(sender))
        for name, envelope in zip(recipients, sealed, strict=True):
            self._sealed[sender, name] = envelope

    def relayed(self, missing: Collection[str]) -> dict[str, bytes]:
        """Return for each party the envelopes of its partners; they are not kept.

        Parties that are missing get none, and theirs are dropped.
        """
        sealed, self._sealed = self._sealed, {}
        return {
            name: frame(
                sealed[other, name]
                for other in seed_partners(self._study, name)[0]
                if other not in missing
            )
            for name in self._study.parties
            if name not in missing
        }
