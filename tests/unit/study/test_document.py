"""The study document: read, written, pinned by its digest; contradictions are refused."""

import dataclasses
import datetime as dt
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.crypto.identities.identity import Identity
from common.crypto.sums.plan import Aggregation, Noise
from common.errors import InputError
from common.methods.registry import methods
from common.privacy.randomness import SeededRandomSource
from common.schema import Schema
from common.study.analyses import read_analyses
from common.study.document import Study
from common.study.members import Member

SCHEMA = Schema.from_toml(
    """
attribute = [
  { name = "age", kind = "real", min = 0.1, max = 99.5, bins = 4 },
  { name = "sex", kind = "categorical", values = ["F", "M"] },
]
"""
)
IDENTITIES = [Identity.generate(SeededRandomSource(i)).public for i in range(3)]


def study(**changes):
    fields = {
        "name": "regional health",
        "schema": SCHEMA,
        "members": tuple(
            Member(name=name, rows=100 + i, identity=IDENTITIES[i])
            for i, name in enumerate(("north", "été", "south"))
        ),
        "epsilon": Fraction(4, 5),
        **changes,
    }
    return Study(**fields)


@settings(max_examples=30, deadline=None)
@given(
    method=st.sampled_from(tuple(methods())),
    epsilon=st.fractions(min_value="1/1000", max_value=100),
    colluders=st.integers(0, 2),
    cohorts=st.integers(1, 3),
    name=st.text(st.characters(codec="utf-8", categories=["L", "N", "P"]), min_size=1, max_size=30),
    encoding=st.sampled_from(["own", "binary"]),
    output_rows=st.integers(0, 10**9),
    purpose=st.text(st.characters(codec="utf-8", categories=["L", "N", "P"]), max_size=30),
    contact=st.text(st.characters(codec="utf-8", categories=["L", "N", "P"]), max_size=30),
    expires=st.none() | st.dates(),
)
def test_a_study_survives_being_written_and_read(**fields):
    first = study(**fields)
    again = Study.from_toml(first.to_toml())
    assert again == first
    assert again.digest == first.digest


def test_the_order_of_parties_and_attributes_in_the_file_is_free():
    text = study().to_toml()
    parties = text[text.index("[[party]]") : text.index("[[attribute]]")]
    head = text[: text.index("[[party]]")]
    attributes = text[text.index("[[attribute]]") :]
    assert Study.from_toml(head + attributes + "\n" + parties).digest == study().digest


@pytest.mark.parametrize(
    "change",
    [
        {"name": "another"},
        {"epsilon": Fraction(1)},
        {"method": "dp-subn"},
        {"profile": "paper"},
        {"aggregation": Aggregation.MASKED},
        {"colluders": 2},
        {"cohorts": 2},
        {"key_bits": 3072},
        {"encoding": "binary"},
        {"output_rows": 5},
        {"purpose": "x"},
        {"recipient": "x"},
        {"contact": "x"},
        {"ethics": "x"},
        {"expires": dt.date(2027, 1, 1)},
        {"members": study().members[:2]},
        {"members": (study().members[1], study().members[0], study().members[2])},
        {"members": (dataclasses.replace(study().members[0], rows=7), *study().members[1:])},
        {"schema": Schema(SCHEMA.attributes[::-1])},
        {"schema": Schema.from_toml(SCHEMA.to_toml().replace('"M"', '"X"'))},
        {"schema": Schema.from_toml(SCHEMA.to_toml().replace("99.5", "98.5"))},
    ],
)
def test_every_change_changes_the_digest(change):
    assert study(**change).digest != study().digest


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"method": "magic\n"}, "cannot be printed"),
        ({"profile": "loud"}, "profile"),
        ({"encoding": "morse"}, "encoding"),
        ({"key_bits": 512}, "key_bits: 512 is not one of 2048"),
        ({"epsilon": Fraction(0)}, "epsilon"),
        ({"colluders": 3}, "colluders"),
        ({"cohorts": 4}, "cohorts"),
        ({"cohorts": 0}, "cohorts"),
        ({"members": ()}, "at least one party"),
        ({"members": (study().members[0],) * 2}, "no name twice"),
        (
            {"members": (study().members[0], dataclasses.replace(study().members[0], name="x"))},
            "same identity",
        ),
        ({"name": ""}, "name"),
        ({"output_rows": -1}, "output_rows"),
        ({"purpose": "x" * 1001}, "purpose: characters: at most 1,000"),
        ({"contact": "x\ny"}, "contact: .*cannot be printed"),
        ({"noise": Noise.NONE}, "without noise"),
        ({"noise": Noise.ONE_SHARE}, "does not protect from the other parties"),
        (
            {"noise": Noise.ONE_SHARE, "profile": "paper", "aggregation": Aggregation.MASKED},
            "masked",
        ),
    ],
)
def test_contradictions_are_refused_by_name(change, named):
    with pytest.raises(InputError, match=named):
        study(**change)


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("name =", "nom =", "unknown key 'nom'"),
        ('epsilon = "4/5"', 'epsilon = "much"', "epsilon: 'much' is not a number"),
        ('epsilon = "4/5"', "", "epsilon is missing"),
        ("colluders = 1", 'colluders = "one"', "colluders: expected a whole number"),
        ('noise = "distributed"', 'noise = "pink"', "noise: 'pink' is not one of"),
        ("rows = 100", "rows = 0", "rows must be a whole number of at least 1"),
        ("rows = 100", "rows = 100.0", "rows must be a whole number"),
        ("rows = 100", "rows = true", "rows must be a whole number"),
        ("rows = 100", 'rows = "many"', "rows must be a whole number"),
        ('name = "north"', "name = 5", "a name is a text"),
        ("rows = 100", "lines = 100", "expected name, rows and identity"),
        ('identity = "', 'identity = "!', "not base64"),
        ('identity = "', 'identity = "AAAA', "not a public identity"),
        ("[[party]]", "[party", "not valid TOML"),
        ('kind = "real"', 'kind = "unreal"', "age"),
    ],
)
def test_a_damaged_file_is_refused_with_its_name(tmp_path, old, new, named):
    text = study().to_toml()
    assert old in text
    path = tmp_path / "study.toml"
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(InputError, match=named) as refused:
        Study.load(path)
    assert str(path) in str(refused.value)


def test_a_budget_written_as_a_number_is_exact():
    text = study().to_toml().replace('epsilon = "4/5"', "epsilon = 0.1")
    assert Study.from_toml(text).epsilon == Fraction(1, 10)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InputError, match=r"absent\.toml"):
        Study.load(tmp_path / "absent.toml")


@pytest.mark.parametrize(
    "text",
    [
        f"name = {'[' * 5000}{']' * 5000}",
        'name = "x"\nepsilon = "1"\nparty = 5\nattribute = []',
        'name = "x"\nepsilon = "1"\nparty = [5]\nattribute = []',
        'name = "x"\nepsilon = "1e999999999"\nparty = []\nattribute = []',
        'name = "x"\nepsilon = 1e999999999\nparty = []\nattribute = []',
    ],
)
def test_a_hostile_text_is_refused_and_costs_nothing(text):
    with pytest.raises(InputError):
        Study.from_toml(text)


def test_delta_is_exact_travels_and_is_in_the_digest():
    plain = study()
    assert (plain.delta, plain.promise.currency) == (0, "epsilon")
    given_one = dataclasses.replace(plain, delta=Fraction(1, 10**9))
    assert given_one.digest != plain.digest
    again = Study.from_toml(given_one.to_toml())
    assert (again.delta, again.digest) == (Fraction(1, 10**9), given_one.digest)
    assert again.promise.currency == "rho"
    without = plain.to_toml().replace('delta = "0"\n', "")
    assert Study.from_toml(without).digest == plain.digest
    as_number = given_one.to_toml().replace('"1/1000000000"', "1e-9")
    assert Study.from_toml(as_number).digest == given_one.digest


@pytest.mark.parametrize(
    ("delta", "more", "named"),
    [
        (Fraction(-1, 10), {}, "must not be negative"),
        (Fraction(1, 500), {}, "above 0.001"),
        (Fraction(1, 10**6), {"profile": "paper"}, "the paper's noise promises pure epsilon"),
    ],
)
def test_a_delta_that_promises_nothing_is_refused(delta, more, named):
    with pytest.raises(InputError, match=named):
        study(delta=delta, **more)


def test_a_delta_above_one_of_the_rows_is_refused():
    members = study().members
    rows = [dataclasses.replace(member, rows=10**6) for member in members]
    with pytest.raises(InputError, match=r"delta: 1e-06 is above 1 / \d+, the rows of the study"):
        study(delta=Fraction(1, 10**6), members=tuple(rows))


CURATOR = Identity.generate(SeededRandomSource("hub")).public.fingerprint


def test_a_study_pins_its_curator_in_the_text_and_in_the_digest():
    pinned = study(curator=CURATOR)
    assert f'curator = "{CURATOR}"' in pinned.to_toml()
    assert Study.from_toml(pinned.to_toml()) == pinned
    assert pinned.digest != study().digest
    assert pinned.pinned == {each.fingerprint for each in IDENTITIES} | {CURATOR}
    with pytest.raises(InputError, match="curator: not a fingerprint"):
        Study.from_toml(pinned.to_toml().replace(CURATOR, "hub"))
    for typed in (CURATOR.lower(), CURATOR.replace("-", "")):
        assert Study.from_toml(pinned.to_toml().replace(CURATOR, typed)) == pinned


def test_a_study_without_a_curator_has_the_digest_that_version_0_2_gave_it():
    expected = "cc66041d5410da9eb5622b8cb3166149bd56db1cb3805b0e60ada9f5e525ed90"
    assert study().digest.hex() == expected
    assert "curator" not in study().to_toml()


ASKED = ({"mean": "age", "by": ["sex"]}, {"relation": ["age", "sex"]})


def test_analyses_are_in_the_text_and_in_the_digest_and_their_order_counts():
    asking = study(analyses=read_analyses(ASKED, SCHEMA))
    assert Study.from_toml(asking.to_toml()) == asking
    for others in (Fraction(0), Fraction(1, 3)):
        said = dataclasses.replace(asking, others=others)
        assert Study.from_toml(said.to_toml()) == said
        assert said.digest not in (asking.digest, study().digest)
    assert study(analyses=read_analyses(ASKED[::-1], SCHEMA)).digest != asking.digest
    assert "analys" not in study().canonical.decode()


@pytest.mark.parametrize(("old", "new", "named"), [
    ('mean = "age"', 'mean = "wealth"', "analysis 1: .*wealth"),
    ('mean = "age"', 'mean = "sex"', "analysis 1: .*there twice"),
    ('name = "regional', 'others = "1"\nname = "regional', "others"),
])  # fmt: skip
def test_a_bad_analysis_is_refused_by_its_number(old, new, named):
    text = study(analyses=read_analyses(ASKED[:1], SCHEMA)).to_toml()
    with pytest.raises(InputError, match=named):
        Study.from_toml(text.replace(old, new, 1))
    with pytest.raises(InputError, match="others: 0 is the part"):
        study(others=Fraction(0))


def test_analyses_are_checked_against_another_schema():
    asking = study(analyses=read_analyses(ASKED, SCHEMA))
    with pytest.raises(InputError, match="analysis 1"):
        dataclasses.replace(asking, schema=Schema(SCHEMA.attributes[1:]))


def test_the_parties_are_known_by_name_and_in_order():
    agreed = study()
    assert agreed.parties == ("north", "été", "south")
    assert list(agreed.rows_of.items()) == [("north", 100), ("été", 101), ("south", 102)]
    assert list(agreed.roster.items()) == list(zip(agreed.parties, IDENTITIES, strict=True))
    assert agreed.member("été") is agreed.members[1]


def test_a_party_that_a_study_does_not_have_is_refused_with_those_that_it_has():
    with pytest.raises(
        InputError, match=r"it has no party 'west'\. Its parties: north, été, south"
    ):
        study().member("west")
