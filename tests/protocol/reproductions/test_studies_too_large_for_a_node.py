"""What a study can make a node do before its owner has approved anything."""

import json
import subprocess
import sys
import tracemalloc
from fractions import Fraction

import pytest

from common.crypto.identities.identity import Identity
from common.errors import InputError, PolicyError
from common.methods.registry import run_of
from common.privacy.randomness import SeededRandomSource
from common.schema import Schema, limits
from common.study.document import Study
from common.study.members import Member
from party.owner.dry_run import dry_run

PEOPLE = {name: Identity.generate(SeededRandomSource(name)).public for name in "abc"}
BINS = '[[attribute]]\nname = "a{}"\nkind = "integer"\nmin = 0\nmax = 65535\nbins = {}\n'
LARGE = "".join(BINS.format(number, 1 << 16) for number in range(2))
SMALL = "".join(BINS.format(number, 3) for number in range(2, 6))


def study(schema, rows=1_000_000, **changes):
    members = tuple(Member(name=n, rows=rows, identity=PEOPLE[n]) for n in "abc")
    fields = {"name": "s", "schema": Schema.from_toml(schema), "epsilon": Fraction(1), **changes}
    return Study(members=members, **fields)


def document(line="", *, name='"s"', rows="1000", attributes=SMALL):
    """A study.toml, as text."""
    text = study(SMALL).to_toml().partition("[[attribute]]")[0]
    return text.replace('"s"', name).replace("1000000", rows) + attributes + line


REHEARSE = """
import json, resource, sys
from common.methods.registry import run_of
from common.study.document import Study
from party.owner.dry_run import dry_run
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
for text in json.load(sys.stdin):
    assert len(dry_run(Study.from_toml(text), "a", begin=run_of)) > 1, text
"""


def test_a_rehearsal_takes_little_memory_whatever_the_study_says():
    studies = [
        study(LARGE + SMALL, 1_000_000, method="subn+"),
        study(SMALL, limits.MOST_ROWS // 3, method="dp-subn"),
        study(SMALL, limits.MOST_ROWS // 3, method="independent"),
    ]
    ran = subprocess.run(
        [sys.executable, "-c", REHEARSE], input=json.dumps([each.to_toml() for each in studies]),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr


def test_a_step_that_nobody_could_send_is_refused_before_anything_is_made_for_it():
    asked = study(LARGE + SMALL, method="dp-subn", epsilon=Fraction(10))
    tracemalloc.start()
    try:
        with pytest.raises(PolicyError, match=r"'correlations': it asks for 4,[\d,]+ integers"):
            dry_run(asked, "a", begin=run_of)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 256 << 20


def test_a_plan_of_too_many_integers_in_all_is_refused(monkeypatch):
    monkeypatch.setattr("common.study.dry_run.MOST_PLAN_CELLS", 10)
    with pytest.raises(PolicyError, match="all its steps ask for: at most 10"):
        dry_run(study(SMALL), "a", begin=run_of)


def test_a_study_without_us_can_be_rehearsed():
    steps = dry_run(study(SMALL, method="dp-subn", profile="paper"), "z", begin=run_of)
    assert sum(step.cost for step in steps) == 0


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (document(rows="100000000000"), "rows: at most 10,000,000,000"),
        (document(rows="9000000000"), "rows of all parties together: at most"),
        (document(rows=f"0x{'f' * 9000}"), "rows: at most 10,000,000,000"),
        (document(rows="9" * 9000), "too many digits"),
        (document(".".join(["x"] * 200_000) + " = 1\n"), "more than 32 parts"),
        (document("[" + ".".join(["'x'"] * 200_000) + "]\n"), "more than 32 parts"),
        (document("x = " + "[" * 100_000), "nested too deeply"),
        (document(name='"s"\n"\\u001b[2J" = 1'), r"unknown key '\\x1b\[2J'"),
        (
            document(attributes=BINS.format(0, 10**12).replace("65535", f"{10**15}")),
            "bins: a domain has at most 65,536, not 1,000,000,000,000: use fewer",
        ),
        (
            document(attributes="".join(BINS.format(i, 3) for i in range(501))),
            "attributes of a schema: at most 500",
        ),
        (document(name='"\\u001b[31mred"'), r"name: '\\x1b\[31mred' has characters"),
        (document(name='"x\\nWhat it costs"'), "cannot be printed"),
        (document(name='"x\\u202ey"'), "cannot be printed"),
        (document(name=f'"{"x" * 101}"'), "expected 1 to 100 characters, got 101"),
        (document(attributes=BINS.format("\\u001b[2J", 3)), r"name: 'a\\x1b\[2J' has characters"),
        (document(attributes=BINS.format("\\nb", 3)), "attribute 1: name: .*cannot be printed"),
        (document(attributes=BINS.format("x" * 1000, 3)), "attribute 1: name: expected 1 to 1,000"),
        (
            document(
                attributes='[[attribute]]\nname = "a"\nkind = "categorical"\n'
                f'values = ["{"x" * 1001}", "b"]\n'
            ),
            "characters of a value: at most 1,000, not 1,001",
        ),
    ],
)
def test_a_document_beyond_a_limit_is_refused_as_it_is_parsed(text, named):
    with pytest.raises(InputError, match=f"^the study: .*{named}") as caught:
        Study.from_toml(text, where="the study")
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 1000


def test_too_many_parties_are_refused_before_their_identities_are_looked_at():
    text = document('[[party]]\nname = "x"\nrows = 1\nidentity = "?"\n' * 998)
    with pytest.raises(InputError, match="parties of a study: at most 1,000, not 1,001"):
        Study.from_toml(text)


def test_too_many_values_in_all_are_refused(monkeypatch):
    monkeypatch.setattr("common.schema.declaration.MOST_VALUES", 11)
    with pytest.raises(InputError, match="values of all attributes together: at most 11, not 12"):
        Study.from_toml(document())


def test_the_document_of_an_ordinary_study_is_taken():
    assert Study.from_toml(document()).name == "s"
