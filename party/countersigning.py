"""An owner vouches for a release: verified, compared with the owner's own records, signed.

A signature vouches neither for the rows nor for the model: that a model follows from the study and
the published results is checked by every reader who verifies the release. Only the party knows
whether it approved the study, took part in it to the end, saw these results and no others, and paid
what the statement says.

A party that left the study after its words were in a sum vouches for less: that it sent its words
to the sums that the statement counts it in, under the steps and the results before them that it was
shown, and that these cost what the statement says.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from common.crypto.identities.identity import Identity
from common.crypto.key_files import AskPassphrase, load_identity
from common.errors import InputError, NotCountersignedError
from common.exchanges.commitments import COMMITMENTS
from common.exchanges.recoverable import Round
from common.methods.registry import run_of
from common.privacy.randomness import OsRandomSource
from common.release.archive import add_signature
from common.release.contents import open_release
from common.release.manifest import Signature, Signer, SignerRole
from common.release.prior import bundled_prior
from common.release.verify import Verified, verify
from common.study.commitments import Commitments, framed_tables
from common.study.document import Study
from common.study.history import History, HistoryDigest
from common.study.messages import ResultPublished, StepMessage, StepOpened, StudyFinished, ToParty
from common.study.script import ScriptRun
from common.study.steps import StepContext
from common.wire import codec
from common.wording import Reporter, silent
from party.client.context import PartyContext
from party.journal import CURATOR, Journal, JournalState
from party.ledger import Ledger
from party.owner.decisions import Approvals
from party.settings import PartySettings, open_file

_LEFT = (
    JournalState.LEFT,
    JournalState.ABORTED,
)  # a node may not have heard yet that it was finished


@dataclass(frozen=True, slots=True)
class Records:
    """What a party decided, received and paid."""

    approvals: Approvals
    journal: Journal
    ledger: Ledger


def countersign(
    release: Path,
    settings: PartySettings,
    *,
    passphrase: AskPassphrase,
    verified: Verified | None = None,
    tell: Reporter = silent,
) -> Signature:
    """Add a party's signature to a release folder or .zip; repeating it is harmless.

    `verified` is what `verify` says of this release; by default it is verified here.

    Raises:
        InputError: the release is not to be relied on, or is of a single owner.
        NotCountersignedError: it is not the study we approved, the results we saw, or the epsilon
            we paid.
    """
    identity = load_identity(settings.keys / "identity.key", passphrase=passphrase)
    if verified is None:  # it may be unsigned: our own records say whether it is ours
        verified = verify(release, unsigned=True, rehearsal=True, tell=tell)
    verified.require()
    study = _study_of(release, verified)
    with open_file(settings) as file:
        records = Records(Approvals(file), Journal(file, OsRandomSource()), Ledger(file))
        return _sign(release, verified, study, identity, records)


def vouch(release: Path, verified: Verified, context: PartyContext) -> Signature:
    """Do what `countersign` does, for a node that has just verified the release."""
    records = Records(context.approvals, context.journal, context.ledger)
    return _sign(release, verified, _study_of(release, verified), context.identity, records)


def _study_of(release: Path, verified: Verified) -> Study:
    study = verified.consistency.study
    if study is None:
        raise InputError(
            f"{release}: the release is of a single owner, so it has no study to vouch for"
        )
    if not (verified.consistency.derived and verified.verified):
        raise NotCountersignedError(
            f"we do not vouch for {verified.where}: it cannot be derived from its study here"
        )
    return study


def _sign(
    release: Path, verified: Verified, study: Study, identity: Identity, records: Records
) -> Signature:
    name = _our_name(study, identity)
    with open_release(release) as contents:
        prior = bundled_prior(contents, study)
    reasons = reasons_against(
        study,
        records,
        party=name,
        results=verified.consistency.results,
        privacy=verified.consistency.privacy,
        commitments=verified.consistency.commitments,
        begin=run_of if prior is None else prior.begin,
    )
    if reasons:
        raise NotCountersignedError(f"we do not vouch for {verified.where}: {'; '.join(reasons)}")
    signer = Signer(role=SignerRole.PARTY, name=name, identity=identity)
    signature = signer.sign(verified.checked.manifest_bytes)
    add_signature(release, signature)
    return signature


def _our_name(study: Study, identity: Identity) -> str:
    for name, pinned in study.roster.items():
        if pinned == identity.public:
            return name
    raise NotCountersignedError(
        f"study {study.name!r}: no party of the study has our identity "
        f"{identity.public.fingerprint}"
    )


def reasons_against(
    study: Study,
    records: Records,
    *,
    party: str,
    results: Sequence[bytes],
    privacy: Mapping[str, Any],
    commitments: Commitments | None = None,
    begin: Callable[[Study], ScriptRun] = run_of,
) -> list[str]:
    """List why this party does not vouch for a release; empty if it does.

    `results`, `commitments` and `privacy` are what the release says was published, and its privacy
    statement.

    Raises:
        LocalError: the ledger was tampered with.
    """
    records.ledger.verify()
    decision = records.approvals.decision(study.digest)
    if decision is None or not decision.approved:
        withdrew = decision is not None and decision.withdrawn_at is not None
        return ["we withdrew from this study" if withdrew else "we did not approve this study"]
    record = records.journal.record(study.digest)
    missing = privacy.get("missing", {})
    sums = missing.get(party, len(results))
    reasons = []
    if record is not None and record.state is JournalState.FINISHED:
        if party in missing or party in privacy.get("left", {}):
            reasons.append("it says that we left, and we took part to the end")
        counted = Counted(len(results))
    elif record is not None and study.may_miss and record.state in _LEFT:
        if not sums:
            return ["we are in no sum of it"]
        kinds = Counter(
            message.kind for message in records.journal.sent_log() if message.study == study.digest
        )
        words, lists = (
            kinds[codec.TO_CURATOR.name_of_round(name)]
            for name in (Round.MASKED_INPUT, Round.CONSISTENCY_CHECK)
        )
        counted = Counted(sums, words=words, lists=lists)
    else:
        return ["we did not take part in this study to its end"]
    received = records.journal.inbox.digests(study.digest, CURATOR)
    published = results[: counted.results]
    if not counted.left:
        published = _published_to_us(records.journal, study, results, privacy)
    if not _saw_tables(received, study, commitments):
        reasons.append("the commitments to tables in it are not those that were published to us")
    elif not _saw(received, study, published, commitments):
        what = "results" if commitments is None else "results and commitments"
        reasons.append(f"the {what} in it are not those that were published to us")
    elif not told_missing(
        received, study, results, missing, counted=counted, commitments=commitments, begin=begin
    ):
        reasons.append("the parties it calls missing are not those that we were told of")
    elif not _told_of_leaving(received, study, privacy, counted):
        reasons.append("the parties that left, or why, are not those that we were told of")
    paid = records.ledger.spending(study.digest.hex()).paid
    stated = privacy.get("exact", {}).get("parties_paid", {}).get(party)
    if study.rehearsal:
        if paid:
            reasons.append(f"our ledger has {paid} for it, and a rehearsal charges nothing")
    elif stated != str(paid):
        currency = study.promise.currency
        reasons.append(f"our ledger has {currency} {paid} for it, its statement says {stated}")
    return reasons


@dataclass(frozen=True, slots=True)
class Counted:
    """In how many sums a release counts a party, and what the party sent if it left."""

    sums: int
    words: int | None = None  # messages with words; None if it took part to the end
    lists: int = 0  # lists that it signed

    @property
    def left(self) -> bool:
        return self.words is not None

    @property
    def results(self) -> int:
        """How many results the party must have seen: of the sum it left in, it saw none."""
        return self.sums - 1 if self.left else self.sums


def _published_to_us(
    journal: Journal, study: Study, results: Sequence[bytes], privacy: Mapping[str, Any]
) -> Sequence[bytes]:
    """Return the results that came to us: all of them, unless we were away until the very end.

    What we saw of the rest is the release. Nothing else came in their place: there were no more.
    """
    if _finished(study, privacy) in journal.inbox.digests(study.digest, CURATOR):
        return results
    return results[: journal.traffic.results(study.digest)]


def _saw(
    received: Sequence[bytes],
    study: Study,
    results: Sequence[bytes],
    commitments: Commitments | None,
) -> bool:
    """Say whether every result came to us, in this order; the digests outlive the bodies.

    With it came the commitments to contributions, our own among them: the role compared it.
    """
    came = iter(received)
    return all(
        _digest_of(
            ResultPublished(
                study=study.digest, step=step, result=result,
                contributions=_contributions(commitments, step),
            )
        )
        in came
        for step, result in enumerate(results)
    )  # fmt: skip


def _contributions(commitments: Commitments | None, step: int) -> tuple[bytes, ...]:
    return () if commitments is None else commitments.contributions[step]


def _saw_tables(received: Collection[bytes], study: Study, commitments: Commitments | None) -> bool:
    """Say whether these commitments to tables came to us, ours among them: the role compared it."""
    if commitments is None:
        return not study.commitments
    payload = (framed_tables(commitments.tables),)
    message = StepMessage(study=study.digest, step=0, round=COMMITMENTS, payload=payload)
    return _digest_of(message) in received


def _digest_of(message: ToParty) -> bytes:
    return hashlib.sha256(codec.TO_PARTY.encode(message)).digest()


def told_missing(
    received: Collection[bytes],
    study: Study,
    results: Sequence[bytes],
    missing: Mapping[str, int],
    *,
    counted: Counted | None = None,
    commitments: Commitments | None = None,
    begin: Callable[[Study], ScriptRun] = run_of,
) -> bool:
    """Say whether the parties called missing are those that we were told of, step by step.

    `missing` has for each missing party the first step without it. A party that left also compares
    the words that it sent with the sums that it is `counted` in.
    """
    if not study.may_miss:
        return not missing
    counted = counted or Counted(len(results))
    came, run, history = set(received), begin(study), History(study.digest)
    history.add_key(b"")
    if commitments is not None:
        history.add_tables(framed_tables(commitments.tables))
    before: tuple[str, ...] = ()
    words = lists = 0
    for number, result in enumerate(results[: counted.sums]):
        missing_now = _in_order(study, {name for name, first in missing.items() if first <= number})
        in_the_dark = counted.left and number == counted.sums - 1 and counted.lists == lists
        if not _told_in_step(
            came, study, run, history.digest, number, before, missing_now, in_the_dark
        ):
            return False
        run.leave_out(missing_now)
        step = run.step()
        if step is None:
            return False
        context = StepContext(study=study, number=number, step=step, history=history.digest)
        run.advance(step.read(study, result))
        history.add_result(number, result, _contributions(commitments, number))
        history.add_missing(number, missing_now)
        before = missing_now
        words, lists = words + step.exchange.answers(context)[Round.MASKED_INPUT], lists + 1
    return counted.words is None or counted.words >= words


def _told_of_leaving(
    received: Collection[bytes], study: Study, privacy: Mapping[str, Any], counted: Counted
) -> bool:
    """Say whether we were told of the disputes, and of parties that left in the last sum.

    A party that left itself was told of the disputes before its last sum.
    """
    came, missing, left = set(received), privacy.get("missing", {}), privacy.get("left", {})
    disputes = [
        dispute for dispute in privacy.get("disputes", []) if dispute["step"] < counted.results
    ]
    if not all(bytes.fromhex(dispute["evidence"]) in came for dispute in disputes):
        return False
    if counted.left or set(left) <= set(missing):
        return True
    return _finished(study, privacy) in came


def _finished(study: Study, privacy: Mapping[str, Any]) -> bytes:
    """Return the digest of the message that ends the study, as the statement has it."""
    out = _in_order(study, {*privacy.get("left", {}), *privacy.get("missing", {})})
    return _digest_of(StudyFinished(study=study.digest, missing=out))


def _told_in_step(
    came: Set[bytes],
    study: Study,
    run: ScriptRun,
    history: HistoryDigest,
    number: int,
    before: Sequence[str],
    missing_now: Sequence[str],
    in_the_dark: bool,  # noqa: FBT001  # private
) -> bool:
    """Say whether a step was opened to us, and its list published, with these parties missing.

    Each of them was out when the step was opened, or was missing on the list. `in_the_dark` says
    that we left before any list of the step came to us.
    """
    new = [name for name in missing_now if name not in before]
    for size in range(len(new) + 1):
        for early in combinations(new, size):
            out = _in_order(study, {*before, *early})
            step = run.step_without(out)
            if step is None:
                return False
            context = StepContext(study=study, number=number, step=step, history=history)
            opened = StepOpened(
                study=study.digest, step=number, digest=context.digest, opening=b"", missing=out
            )
            late = tuple(name for name in new if name not in early)
            check = Round.CONSISTENCY_CHECK
            listed = StepMessage(study=study.digest, step=number, round=check, payload=(late,))
            recoverable = step.exchange.answers(context)[check] > 0
            on_list = _digest_of(listed) in came if recoverable else not late
            on_list = on_list or (recoverable and in_the_dark)
            if on_list and _digest_of(opened) in came:
                return True
    return False


def _in_order(study: Study, names: Set[str]) -> tuple[str, ...]:
    return tuple(name for name in study.parties if name in names)
