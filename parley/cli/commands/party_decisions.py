"""`parley party review`, `approve`, `decline` and `withdraw`: an owner's yes or no to a study."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from common.errors import InputError
from common.privacy.randomness import OsRandomSource
from common.privacy.spending import fraction_words
from common.service.process import running_in, stamp, system_clock
from common.study.document import Study
from common.study.ids import StudyId
from parley.cli import console
from parley.cli.commands.party_records import dialer_of, one_study, owner_context
from parley.cli.options import Config, Offline, PriorFile, StudyFile, Yes
from parley.cli.result import Result
from party.client.context import PartyContext, require_open
from party.journal import Journal
from party.ledger import Ledger
from party.owner import decisions
from party.owner.decisions import Approvals
from party.owner.review import Review
from party.settings import PartySettings, open_file, party_settings
from party.state import reading


def review(study: StudyFile, *, prior: PriorFile = None, config: Config = None) -> Result:
    """Show what a study costs, what it asks, and what would leave. Decides nothing.

    The release that a study builds on comes from the curator, with the study: `party join` and
    `party fetch` take it. Hand it over with --prior where they did not.
    """
    with owner_context(config, only_read=True) as context:
        reviewed, _ = _seen(context, study, prior)
    return Result(reviewed, [reviewed.text().rstrip("\n")])


def approve(
    study: StudyFile,
    *,
    prior: PriorFile = None,
    config: Config = None,
    yes: Yes = False,
    offline: Offline = False,
) -> Result:
    """Approve a study, after a review; the node then signs it and takes part.

    A study that is over, here or at the curator, is refused with exit code 4.
    """
    with owner_context(config) as context:
        dial = None if offline else dialer_of(party_settings(config, os.environ).values).dial
        require_open(Study.load(study), context, dial, warn=console.warn)
        reviewed, rows = _seen(context, study, prior)
        if not yes and not reviewed.reasons_against:
            console.note(reviewed.text())
            if not typer.confirm(f"{reviewed.consent}?", err=True):
                raise InputError("you did not confirm, so nothing was decided")
        decisions.approve(context.approvals, reviewed, at=context.now(), data_digest=rows)
    return Result(
        {
            "study": reviewed.digest, "decision": "approved", "epsilon": reviewed.charged,
            "delta": reviewed.delta,
        },
        [f"approved {reviewed.digest}"],
    )  # fmt: skip


def decline(
    study: StudyFile,
    *,
    config: Config = None,
    reason: Annotated[str, typer.Option(help="For our own records; it is not sent.")] = "",
    yes: Annotated[
        bool, typer.Option("--yes", help="Do not ask before an approval is withdrawn.")
    ] = False,
) -> Result:
    """Decline a study, or withdraw from one that was approved; for good.

    The node tells the curator, within seconds if it runs, and not why. From then on nothing more is
    charged and nothing more leaves, and the study ends for every party. What was charged stays
    charged. A study that is over cannot be withdrawn from.
    """
    settings = party_settings(config, os.environ).values
    return _say_no(Study.load(study).digest, settings, reason=reason, yes=yes)


def withdraw(
    study: Annotated[
        str, typer.Argument(help="The study.toml, the first characters of its digest, or its name.")
    ],
    *,
    config: Config = None,
    reason: Annotated[str, typer.Option(help="For our own records; it is not sent.")] = "",
    yes: Yes = False,
) -> Result:
    """Withdraw from a study that was approved; for good.

    Before our first answer this costs nothing; later, what was charged stays charged. The node
    tells the curator, within seconds if it runs, and not why. A study under way that may miss an
    owner goes on without us. Any other ends for all; its operator may offer one without us.
    """
    settings = party_settings(config, os.environ).values
    with reading(settings.folder, keys=settings.keys) as file:
        digest = _known_study(study, Approvals(file), Journal(file, OsRandomSource()))
        earlier = Approvals(file).decision(digest)
    if earlier is None or not (earlier.approved or earlier.withdrawn_at):
        raise InputError(
            f"study {digest.hex()[:16]}: it was not approved, so there is nothing to withdraw. To "
            "refuse it, run `parley party decline`"
        )
    return _say_no(digest, settings, reason=reason, yes=yes)


def _known_study(written: str, approvals: Approvals, journal: Journal) -> StudyId:
    """Return the digest of the one study of ours that was meant."""
    path = Path(written)
    if path.is_file():
        return Study.load(path).digest
    names = {record.study: record.name for record in journal.studies()}
    return one_study(written, dict.fromkeys(approvals.studies(), "") | names)


def _say_no(digest: StudyId, settings: PartySettings, *, reason: str, yes: bool) -> Result:
    """Decline a study, or withdraw from it; what it means is shown first."""
    with open_file(settings, begin=True) as file:
        approvals, ledger = Approvals(file), Ledger(file)
        journal = Journal(file, OsRandomSource())
        earlier = approvals.decision(digest)
        if not yes and earlier is not None and earlier.approved:
            console.note(decisions.withdrawal_means(digest, journal=journal, ledger=ledger))
            if not typer.confirm("Withdraw from it?", err=True):
                raise InputError("you did not confirm, so the approval stands")
        at = stamp(system_clock())
        decisions.decline(
            digest, approvals=approvals, journal=journal, ledger=ledger, reason=reason, at=at
        )
        charged = ledger.spent(digest.hex())
        decided = approvals.decision(digest)
    if running_in(settings.folder) is None:
        console.warn(
            "our node does not run: the curator learns of it when you start it, with `parley party "
            "join`"
        )
    word = "declined" if decided is None or decided.withdrawn_at is None else "withdrawn"
    lines = [f"{word} {digest.hex()}"]
    if word == "withdrawn":
        stays = f"charged {fraction_words(charged)}, which stays charged"
        lines.append(stays if charged else "charged nothing")
    return Result({"study": digest, "decision": word, "epsilon_charged": charged}, lines)


def _seen(context: PartyContext, study: Path, prior: Path | None) -> tuple[Review, str]:
    """Return the review, and the digest of the rows that it is about."""
    proposed = Study.load(study)
    if prior is not None and context.priors is not None:
        context.priors.add(prior)
    source = context.open_source(proposed)
    return context.review(proposed, source), source.snapshot.digest
