"""What must hold when the faults are over."""

import json
import time
from collections import Counter
from fractions import Fraction
from pathlib import Path

from tests.chaos.files import QUEUED, read_curator, read_party

_LOOK_EVERY_S = 0.2
_OF_A_FULL_DISK = ("LocalError", "InputError", "OSError")


def settle(world, offers, *, seconds):
    """Wait until every study is as it must be; a violation if nothing changes for so long."""
    before, since = None, time.monotonic()
    while found := problems(world, offers):
        if found != before:
            before, since = found, time.monotonic()
        if time.monotonic() - since > seconds:
            world.violations += found
            return
        world.revive()
        time.sleep(_LOOK_EVERY_S)


def problems(world, offers):
    """What is not, or not yet, as it must be."""
    curator = read_curator(world.folder / "curator" / "curator.db")
    parties = {name: read_party(world.folder / name / "party.db") for name in world.names}
    unread = [who for who, file in {"curator": curator, **parties}.items() if file is None]
    if unread:
        return [f"{who}: its file cannot be read" for who in unread]
    return [
        f"study {offer.study.name}: {problem}"
        for offer in offers
        for problem in of_study(offer, curator, parties)
    ]


def done(world, offers):
    """How many of the studies that can have a release have it."""
    curator = read_curator(world.folder / "curator" / "curator.db")
    states = {} if curator is None else curator.studies
    return sum(states.get(offer.digest, ("",))[0] == "done" for offer in offers)


def of_study(offer, curator, parties):
    """What is not as it must be with one study, in the files of everybody."""
    state, cause, _ = curator.studies.get(offer.digest, ("unknown", "", ""))
    if offer.refused:
        if state != "refused" or "policy" not in cause:
            yield f"must be refused by a policy; it is {state}: {cause}"
    elif state != "done":
        yield f"is {state}, not done: {cause}"
    for what in sorted(set(curator.secrets.get(offer.digest, ()))):
        # No party comes for the end of a study that was refused before it began.
        if not (offer.refused and what == QUEUED):
            yield f"the curator still has {what}"
    for name, party in parties.items():
        yield from _of_party(offer, name, party, curator)


def _of_party(offer, name, party, curator):
    invited = name in offer.names and not offer.refused
    spent, owed = party.spent(offer.digest), _owed(offer, name, curator) if invited else 0
    if spent != owed:
        yield f"the ledger of {name} has epsilon {spent}, not {owed}"
    if invited and party.states.get(offer.digest) != "finished":
        yield f"at {name} it is {party.states.get(offer.digest)}"
    if party.sent_of(offer.digest) != curator.arrived_of(name, offer.digest):
        yield f"what {name} sent is not what the curator has"
    for what in sorted(set(party.secrets.get(offer.digest, ()))):
        yield f"{name} still has {what}"


def _owed(offer, name, curator):
    """What the release states, which `verify` derives again: at most the study's epsilon."""
    statement = Path(curator.studies.get(offer.digest, ("", "", ""))[2]) / "privacy.json"
    if not statement.is_file():
        return offer.study.epsilon
    stated = json.loads(statement.read_text())["exact"]["parties"][name]
    return min(Fraction(stated), offer.study.epsilon)


def verify(world, offers):
    """Have every owner countersign every release, and verify it; how many could be."""
    verified = 0
    curator = read_curator(world.folder / "curator" / "curator.db")
    places = {} if curator is None else curator.studies
    for offer in offers:
        state, _, place = places.get(offer.digest, ("", "", ""))
        if state != "done":
            continue
        for name in offer.names:
            _expect_0(world, "party", "countersign", place, "--config", _settings(world, name))
        verified += _expect_0(world, "verify", place, *_signers(offer))
    return verified


def _signers(offer):
    """Ask for every party. A study that a stranger to it signed names that one as its curator."""
    members = [member.identity.fingerprint for member in offer.study.members]
    if offer.study.signer in members:
        return ["--all-parties"]
    return [word for each in members for word in ("--signer", each)]


def check_ledgers(world):
    """The chain of every ledger is whole."""
    for name in world.names:
        _expect_0(world, "party", "ledger", "--verify", "--config", _settings(world, name))


def check_logs(world):
    """No stack trace anywhere, but of what a full disk causes where one was."""
    for who in world.everybody:
        log = (world.folder / f"{who}.log").read_text(errors="replace")
        allowed = _OF_A_FULL_DISK if who in world.filled else ()
        for trace, times in Counter(_traces(log.splitlines(), allowed)).items():
            world.violations.append(f"{who}: a stack trace in the log, {times} times: {trace}")


def _traces(lines, allowed):
    for text in lines:
        if "Traceback (most recent call last)" in text:
            yield text
        elif text.startswith("{") and text.endswith("}"):  # a killed process leaves half a line
            line = json.loads(text)
            if "at" in line and line["error"] not in allowed:
                yield f"{line['error']}: {line['message']}, {line['at'][-1]}"


def _settings(world, name):
    return world.folder / f"{name}.toml"


def _expect_0(world, *words):
    code, _, said = world.parley(*words)
    if code:
        world.violations.append(f"`parley {' '.join(map(str, words))}`: exit code {code}: {said}")
    return not code
