"""Identifiers keep the glossary of common/README.md: one word, one meaning.

A reader who meets `share` in the protocol knows that it is a part of the noise, because no name
there calls anything else so.
"""

import ast
import re
from functools import cache

import pytest

from tests.harness.sources import ROOT, parsed, sources

# Words that no identifier has, and what to say instead.
NEVER = {
    "attendance": "StudySession",
    "books": "ledger",
    "household": "PartyContext",
    "letters": "digits, or characters",
    "patience": "backoff, or a wait",
    "surroundings": "StudyContext",
}
# Whole names that had another meaning than their word, and the name to use.
NAMES = {
    "Desk": "OwnerInbox",
    "Invitations": "SessionManager",
    "Lines": "Dialer",
    "ShareSubmitted": "a StepMessage of the round `masked input`",
    "Work": "LiveRole",
    "budget_share": "a fraction",
    "epsilon_share": "a fraction",
    "party_transcript": "sent_log",
    "running_hash": "history",
}
# A word, where it would have another meaning than the glossary's, and what to say there.
ELSEWHERE = {
    "release": (
        ("common/bayes", "common/crypto", "common/exchanges", "common/privacy", "common/wavelet"),
        "answer; of Privelet, noisy matrix; to let bytes out is to send",
    ),
    "share": (("common/methods", "common/bayes"), "fraction of a budget, proportion of rows"),
    "shares": (("common/methods", "common/bayes"), "fractions, proportions"),
    "transcript": (("party", "curator", "common/wire"), "sent_log, or history"),
}
# Names with such a word in its own meaning, by the room that they are in.
ALLOWED = {
    "common/methods": {"noise_shares"},  # how many shares of noise a sum carries
    "curator/server": {"Work"},  # the call of the contract
}  # fmt: skip

# Words that say when or how a value came, and not what it is: no name of a value.
PARTICIPLES = {
    "asked", "done", "each", "found", "given", "held", "kept", "made", "needed", "own", "said",
    "seen", "taken", "told", "tried", "wanted",
}  # fmt: skip


def room_of(path):
    return "/".join(path.split("/")[:2])


def defined(tree):
    """The names that a source gives: to classes, functions, parameters, variables, attributes."""
    for node in ast.walk(tree):
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name):
                yield name
            case ast.arg(arg=name):
                yield name
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name


def participles(tree):
    """The variables, parameters, fields and attributes that are called by a participle."""
    for node in ast.walk(tree):
        match node:
            case (
                ast.Name(id=name, ctx=ast.Store())
                | ast.arg(arg=name)
                | ast.Attribute(attr=name, ctx=ast.Store())
            ) if name.lstrip("_") in PARTICIPLES:
                yield name


def words(name):
    return {word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)}


def complaints(path, tree):
    """Each name against the glossary, with what to use instead."""
    for name in sorted(set(defined(tree))):
        if name in NAMES:
            yield name, NAMES[name]
        for word in sorted(words(name) & NEVER.keys()):
            yield name, NEVER[word]
        for word in sorted(words(name) & ELSEWHERE.keys()):
            rooms, instead = ELSEWHERE[word]
            if path.startswith(tuple(f"{room}/" for room in rooms)):
                yield name, instead


@cache
def strange_names():
    """By room, every name against the glossary, with where it is and what to use instead."""
    rooms = {}
    for path in sources():
        for name, instead in complaints(path, parsed(path)):
            rooms.setdefault(room_of(path), {})[name] = f"{path}: {name}. Say {instead}"
    return rooms


def test_no_identifier_uses_a_word_of_the_glossary_for_something_else():
    assert [
        words
        for room, names in strange_names().items()
        for name, words in names.items()
        if name not in ALLOWED.get(room, ())
    ] == []


def test_every_name_that_is_allowed_is_there():
    gone = {room: names - strange_names().get(room, {}).keys() for room, names in ALLOWED.items()}
    assert {room: names for room, names in gone.items() if names} == {}, "take these off the list"


def test_a_variable_says_what_it_holds():
    assert [f"{path}: {name}" for path in sources() for name in participles(parsed(path))] == []


def test_a_variable_that_says_when_is_noticed():
    code = "def f(own): found = [each for each in own]\nclass A:\n    kept: int\nx._made = found"
    assert sorted(participles(ast.parse(code))) == ["_made", "each", "found", "kept", "own"]


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("party/client/sessions.py", "class Household: pass"),
        ("party/client/dialer.py", "def retry(patience): pass"),
        ("common/privacy/accountant.py", "release = charge()"),
        ("common/methods/floor.py", "self.margins_share = 1"),
        ("party/journal.py", "transcript_of_messages = []"),
        ("common/study/messages.py", "class ShareSubmitted: pass"),
    ],
)
def test_a_word_with_another_meaning_is_noticed(path, code):
    assert len(list(complaints(path, ast.parse(code)))) == 1


def test_a_word_with_its_meaning_passes():
    code = "class Release: pass\ndef draw_share(shares): return Share(shares)"
    assert list(complaints("common/release/folder.py", ast.parse(code))) == []


def test_words_of_the_glossary_are_in_the_glossary():
    glossary = (ROOT / "common" / "README.md").read_text()
    for word in ("release", "share", "transcript"):
        assert f"| {word} |" in glossary
