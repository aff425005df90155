"""Does this folder remember what left it? An older copy of it has forgotten what was spent.

A party releases into its journal before it sends, so a curator never has more of its messages than
the journal knows of. If it has, the folder was restored from an old copy, is new, or runs a second
time elsewhere; and the ledger in it does not know what those messages cost.
"""

from __future__ import annotations

from collections.abc import Iterable

from common.errors import LocalError
from common.study.ids import short_id
from party.client.connection import Summary
from party.journal import Journal
from party.owner.policy import Policy


def require_no_rollback(journal: Journal, policy: Policy, studies: Iterable[Summary]) -> None:
    """Go on only if the journal knows of every message of ours that the curator has.

    Raises:
        LocalError: naming the studies, and the two ways out.
    """
    forgotten = [
        each
        for each in studies
        if each.submitted > journal.newest_released(each.study)
        and not policy.writes_off(each.study)
    ]
    if not forgotten:
        return
    listed = "; ".join(
        f"study {short_id(each.study)} ({each.name!r}): {each.submitted}, here "
        f"{journal.newest_released(each.study)}"
        for each in forgotten
    )
    keys = ", ".join(f'"{short_id(each.study)}"' for each in forgotten)
    raise LocalError(
        "this folder is an old copy, a new one, or runs twice: the curator has more messages of "
        f"ours than the journal here ({listed}). So the ledger has forgotten what they cost, and "
        "nothing is answered. Run one node, on the newest copy of the folder. If there is none, "
        "lower epsilon_in_total in the policy by what these studies cost, and add to its [budget]: "
        f"forgotten = [{keys}]"
    )
