"""schema.toml: what it says is what is read, written and refused."""

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import InputError
from common.schema import Attribute, Schema
from common.schema.attribute import BOOLEANS, Listed
from common.schema.binning import Binning
from common.schema.hierarchy import Node, leaf
from tests.harness.schemas import level_sizes

EXAMPLE = """
[[attribute]]
name = "age"
kind = "integer"            # categorical | ordinal | integer | real | boolean | date | datetime
min = 17
max = 90
bins = 16                   # or edges = [...]

[[attribute]]
name = "workclass"
kind = "categorical"        # ordinal: the same, in order; values may be strings or integers
values = ["Private", "Self-employed", "Federal", "State", "Local"]
missing = true              # an explicit category for empty cells
other = true                # an explicit category for values outside the list; default: refuse
hierarchy = { Private = ["Private", "Self-employed"], Government = ["Federal", "State", "Local"] }
"""


def one(text, name="a"):
    return f'[[attribute]]\nname = "{name}"\n{text}\n'


def test_the_documented_example_is_read():
    schema = Schema.from_toml(EXAMPLE)
    age, workclass = schema.attributes
    assert schema.names == ("age", "workclass")
    assert schema.sizes == (16, 7)
    assert schema.position("workclass") == 1
    assert (age.labels[0], age.labels[15], age.ordered) == ("17..21", "86..90", True)
    assert workclass.labels[5:] == ("(other)", "(missing)")
    groups = [group.label for group in workclass.hierarchy.tree.children]
    assert groups == ["Private", "Government", "(other)", "(missing)"]
    assert workclass.hierarchy.levels[1].tolist() == [0, 0, 1, 1, 1, 2, 3]
    assert not workclass.ordered


def test_every_kind_is_read():
    schema = Schema.from_toml(
        one('kind = "ordinal"\nvalues = [3, 1, 2]', "o")
        + one('kind = "real"\nedges = [0, 0.5, 2]', "r")
        + one('kind = "boolean"', "b")
        + one('kind = "date"\nmin = 2024-01-01\nmax = 2024-12-31\nbins = 12\nclip = true', "d")
        + one(
            'kind = "datetime"\n'
            "edges = [2024-01-01T00:00:00, 2024-01-01 12:00:00, 2024-01-02T00:00:00]",
            "t",
        )
    )
    labels = {attribute.name: attribute.labels for attribute in schema.attributes}
    assert labels["o"] == ("3", "1", "2")
    assert labels["r"] == ("[0, 0.5)", "[0.5, 2]")
    assert labels["b"] == ("false", "true")
    assert labels["d"][0] == "2024-01-01..2024-01-31"
    assert labels["t"] == (
        "2024-01-01 00:00:00..2024-01-01 11:59:59",
        "2024-01-01 12:00:00..2024-01-02 00:00:00",
    )
    assert schema.attributes[3].domain.edges[0] == (dt.date(2024, 1, 1) - dt.date(1970, 1, 1)).days


@pytest.mark.parametrize(
    ("declared", "sizes", "level"),
    [
        ('[["a", "b"], ["c", "d"]]', (4, 2), [0, 0, 1, 1]),
        ('{ x = ["c", "a"], y = { z = ["b"], w = "d" } }', (4, 2), [0, 1, 0, 1]),
        ('["a", "b", "c", "d"]', (4,), None),
        ('{ x = [[["a", "b"], "c"], "d"] }', (4, 3, 2), [0, 0, 1, 2]),
    ],
)
def test_hierarchies_nest_tables_and_arrays_to_any_depth(declared, sizes, level):
    text = one(f'kind = "categorical"\nvalues = ["a", "b", "c", "d"]\nhierarchy = {declared}')
    hierarchy = Schema.from_toml(text).attributes[0].hierarchy
    assert level_sizes(hierarchy) == sizes
    if level is not None:
        assert hierarchy.levels[1].tolist() == level


def test_a_hierarchy_may_be_written_as_toml_subtables():
    text = one('kind = "categorical"\nvalues = ["a", "b", "c"]') + (
        '[attribute.hierarchy]\nrest = ["c"]\n[attribute.hierarchy.first]\nboth = ["a", "b"]\n'
    )
    assert level_sizes(Schema.from_toml(text).attributes[0].hierarchy) == (3, 2)


def test_a_hierarchy_over_bins_names_their_numbers():
    text = one(
        'kind = "integer"\nmin = 0\nmax = 9\nbins = 3\nhierarchy = { low = [0], high = [1, 2] }'
    )
    assert Schema.from_toml(text).attributes[0].hierarchy.levels[1].tolist() == [0, 1, 1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no attributes"),
        ("attribute = 3", "double brackets"),
        ("[attribute]\nname = 'a'", "double brackets"),
        ("x =", "not valid TOML"),
        ("tables = 3", "unknown key 'tables'"),
        ("ignore = 'id'", "list of column names"),
        ("[[attribute]]\nkind = 'real'", "attribute 1: name"),
        (one(""), "attribute 'a': kind: missing"),
        (one("kind = 'categorial'\nvalues = ['x', 'y']"), "did you mean 'categorical'"),
        (
            one("kind = 'integer'\nmin = 0\nmax = 9\nbin = 4"),
            "unknown key 'bin' .did you mean 'bins'",
        ),
        (one("kind = 'integer'\nvalues = [1, 2]"), "unknown key 'values'"),
        (one("kind = 'categorical'\nvalues = ['x', 'y']\nclip = true"), "unknown key 'clip'"),
        (one("kind = 'categorical'"), "lists its values"),
        (one("kind = 'categorical'\nvalues = []"), "lists its values"),
        (one("kind = 'categorical'\nvalues = ['x']"), "2 to 65,536 values, not 1"),
        (one("kind = 'categorical'\nvalues = ['x', 'y', 'x']"), "'x' is listed twice"),
        (one("kind = 'categorical'\nvalues = ['x', 1]"), "all strings or all integers"),
        (one("kind = 'categorical'\nvalues = [1.5, 2.5]"), "neither a string nor an integer"),
        (one("kind = 'categorical'\nvalues = [true, false]"), "neither a string nor an integer"),
        (one("kind = 'categorical'\nvalues = ['', 'x']"), "missing = true"),
        (one("kind = 'categorical'\nvalues = ['(other)', 'x']\nother = true"), "special category"),
        (one(f"kind = 'categorical'\nvalues = {list(range(65_537))}"), "65,537: use fewer"),
        (
            one("kind = 'categorical'\nvalues = ['x', 'y']\nmissing = 1"),
            "missing: expected true or false",
        ),
        (one("kind = 'boolean'\nvalues = [true]"), "nothing to list"),
        (one("kind = 'integer'\nmin = 0"), "max: missing"),
        (one("kind = 'integer'\nmin = 0\nmax = 1.5"), "max: 1.5 is not a whole number"),
        (one("kind = 'integer'\nmin = true\nmax = 2"), "min: True is not a whole number"),
        (one("kind = 'integer'\nmin = 3\nmax = 3"), "2 to 65,536 values, not 1"),
        (one("kind = 'integer'\nmin = 0\nmax = 100_000\nbins = 70_000"), "70,000: use fewer"),
        (one("kind = 'integer'\nmin = 0\nmax = 3\nbins = 2.0"), "bins: must be a whole number"),
        (one("kind = 'integer'\nbins = 2\nedges = [0, 1, 2]"), "Leave bins out"),
        (one("kind = 'integer'\nmin = 1\nedges = [0, 1, 2]"), "leave the range"),
        (one("kind = 'integer'\nmax = 1\nedges = [0, 1, 2]"), "leave the range"),
        (one("kind = 'integer'\nedges = 3"), "edges: must be a list"),
        (one("kind = 'integer'\nedges = [0, 1.5, 3]"), "edges: 1.5 is not a whole number"),
        (one("kind = 'real'\nmin = 'x'\nmax = 2"), "min: 'x' is not a number"),
        (one("kind = 'real'\nmin = -inf\nmax = 2"), "not finite"),
        (one("kind = 'date'\nmin = 2024-01-01T00:00:00\nmax = 2024-02-01"), "is not a date"),
        (one("kind = 'datetime'\nmin = 2024-01-01\nmax = 2024-02-01"), "is not a datetime"),
        (
            one("kind = 'datetime'\nmin = 2024-01-01T00:00:00Z\nmax = 2024-02-01T00:00:00Z"),
            "time zone",
        ),
        (
            one("kind = 'datetime'\nmin = 2024-01-01T00:00:00.5\nmax = 2024-02-01T00:00:00"),
            "whole seconds",
        ),
        (one("kind = 'integer'\nmin = 0\nmax = 9\nclip = true\nother = true"), "clip and other"),
        (one("kind = 'integer'\nmin = 0\nmax = 9\ndecimals = 1"), "only real numbers have them"),
        (one("kind = 'real'\nmin = 0\nmax = 9\ndecimals = 0"), "no such number is in the bin"),
        (one("kind = 'real'\nmin = 0\nmax = 9\ndecimals = '2'"), "must be a whole number"),
        (one("kind = 'integer'\nmin = 0\nmax = 9\nheaps = 4"), "heaps: must be a list"),
        (one("kind = 'integer'\nmin = 0\nmax = 9\nheaps = [4, 4]"), "in increasing order"),
        (one("kind = 'integer'\nmin = 0\nmax = 9\nheaps = [4, 10]"), "leave the range"),
        (one("kind = 'integer'\nmin = 0\nmax = 9\nheaps = [0.5]"), "heaps: 0.5 is not a whole"),
        (one("kind = 'real'\nmin = 0\nmax = 9\nheaps = [4]"), "heaps: real numbers need decimals"),
        (
            one("kind = 'real'\nmin = 0\nmax = 90\ndecimals = 1\nheaps = [4.25]"),
            "have more than 1 decimals",
        ),
        (one("kind = 'boolean'") + one("kind = 'boolean'"), "name 'a' is used 2 times"),
        ("ignore = ['a']\n" + one("kind = 'boolean'"), "name 'a' is used 2 times"),
    ],
)
def test_a_wrong_schema_is_refused_with_the_file_and_the_attribute(text, message):
    with pytest.raises(InputError, match=f"^study/schema.toml: .*{message}"):
        Schema.from_toml(text, where="study/schema.toml")


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ("3", "table of groups"),
        ("{ x = ['a', 'b'] }", "no group has the value 'c'"),
        ("{ x = ['a', 'b'], y = ['c', 'a'] }", "'a' is in two groups"),
        ("{ x = ['a', 'b'], y = ['c', 'd'] }", "'d' is not a value"),
        ("{ x = ['a', 'b', 'c'], y = [] }", "'y' is empty"),
        ("[['a', 'b', 'c'], [1]]", "1 is not a value"),
        ("[['a', 'b', 'c'], [2024-01-01]]", "is not a value"),
        ("[" * 150 + "'a', 'b', 'c'" + "]" * 150, "nested"),
    ],
)
def test_a_hierarchy_must_hold_every_value_exactly_once(declared, message):
    text = one(f"kind = 'categorical'\nvalues = ['a', 'b', 'c']\nhierarchy = {declared}")
    with pytest.raises(InputError, match=f"attribute 'a': hierarchy: .*{message}"):
        Schema.from_toml(text)


def test_an_integer_value_is_not_taken_for_true():
    text = one("kind = 'categorical'\nvalues = [0, 1]\nhierarchy = [[0], [true]]")
    with pytest.raises(InputError, match="True is not a value"):
        Schema.from_toml(text)


TEXTS = st.text(min_size=1, max_size=8).filter(
    lambda text: not any("\ud800" <= c <= "\udfff" for c in text)
)
NAMES = st.text(st.characters(exclude_categories=("C", "Z")), min_size=1, max_size=8)
FLAGS = st.fixed_dictionaries({"missing": st.booleans(), "other": st.booleans()})


def _listed(values, flags, kind, grouped):
    codes = list(range(len(values)))
    tree = None
    if grouped and len(values) > 2:
        pair = Node("pair", tuple(leaf(str(values[c]), c) for c in codes[:2]))
        tree = Node("", (pair, *(leaf(str(values[c]), c) for c in codes[2:])))
    return kind, Listed(tuple(values)), flags, tree


ATTRIBUTES = st.one_of(
    st.builds(
        _listed,
        st.lists(TEXTS.filter(lambda n: n[0] != "("), min_size=2, max_size=5, unique=True)
        | st.lists(st.integers(-(2**53), 2**53), min_size=2, max_size=5, unique=True),
        FLAGS,
        st.sampled_from(["categorical", "ordinal"]),
        st.booleans(),
    ),
    st.builds(
        lambda low, width, bins, flags: (
            "integer",
            Binning.equal_width(low, low + width, min(bins, width + 1), whole=True),
            flags,
            None,
        ),
        st.integers(-(2**40), 2**40),
        st.integers(1, 2**40),
        st.integers(2, 50),
        FLAGS,
    ),
    st.builds(
        lambda edges, flags: ("real", Binning.from_edges(sorted(edges), whole=False), flags, None),
        st.lists(st.floats(-1e300, 1e300), min_size=3, max_size=6, unique=True),
        FLAGS,
    ),
    st.builds(
        lambda edges, decimals, flags: (
            "real",
            Binning.from_edges(sorted(edges), whole=False).with_decimals(decimals),
            flags,
            None,
        ),
        st.lists(st.integers(-1_000, 1_000).map(float), min_size=3, max_size=6, unique=True),
        st.integers(0, 6),
        FLAGS,
    ),
    st.builds(
        lambda edges, heaps, flags: (
            "real",
            Binning.from_edges(sorted(edges), whole=False)
            .with_decimals(2)
            .with_heaps(sorted({min(max(h / 100, min(edges)), max(edges)) for h in heaps})),
            flags,
            None,
        ),
        st.lists(st.integers(-9, 9).map(float), min_size=3, max_size=6, unique=True),
        st.sets(st.integers(-900, 900), min_size=1, max_size=4),
        FLAGS,
    ),
    st.builds(
        lambda kind, low, width, flags: (
            kind,
            Binning.equal_width(low, low + width, 2, whole=True),
            flags,
            None,
        ),
        st.sampled_from(["date", "datetime"]),
        st.integers(-500_000, 2_000_000),
        st.integers(1, 900_000),
        FLAGS,
    ),
    st.builds(lambda flags: ("boolean", BOOLEANS, flags, None), FLAGS),
)


@given(st.dictionaries(NAMES, ATTRIBUTES, min_size=1, max_size=4))
def test_what_is_written_reads_back_as_the_same_schema(declared):
    schema = Schema(
        tuple(
            Attribute(name, kind, domain, **flags, tree=tree)
            for name, (kind, domain, flags, tree) in declared.items()
        )
    )
    text = schema.to_toml()
    again = Schema.from_toml(text)
    assert again.to_toml() == text
    assert again.digest() == schema.digest()
    assert [a.labels for a in again.attributes] == [a.labels for a in schema.attributes]
    assert [level_sizes(a.hierarchy) for a in again.attributes] == [
        level_sizes(a.hierarchy) for a in schema.attributes
    ]


def test_the_digest_tells_schemas_apart_and_forgives_layout():
    schema = Schema.from_toml(EXAMPLE)
    assert Schema.from_toml(EXAMPLE.replace("bins = 16", "")).digest() == schema.digest()
    assert Schema.from_toml("ignore = ['id']\n" + EXAMPLE).digest() == schema.digest()
    assert Schema.from_toml(EXAMPLE.replace("bins = 16", "bins = 15")).digest() != schema.digest()
    assert Schema.from_toml(EXAMPLE.replace("= 90", "= 91")).digest() != schema.digest()
    assert Schema.from_toml(EXAMPLE.replace("Government", "Public")).digest() != schema.digest()


def test_a_schema_file_is_loaded_and_named_in_errors(tmp_path):
    path = tmp_path / "schema.toml"
    path.write_text(EXAMPLE, encoding="utf-8")
    assert Schema.load(path) == Schema.from_toml(EXAMPLE)
    path.write_bytes(b'name = "\xff"')
    with pytest.raises(InputError, match=r"schema.toml: not UTF-8 text \(byte 8\)"):
        Schema.load(path)
    with pytest.raises(InputError, match=r"absent.toml: cannot be read"):
        Schema.load(tmp_path / "absent.toml")


def test_an_unknown_name_is_refused_with_the_nearest_known_one():
    with pytest.raises(InputError, match="did you mean 'workclass'"):
        Schema.from_toml(EXAMPLE).position("workclas")


@pytest.mark.parametrize("range_given", ["", "min = 0\n", "max = 90\n", "min = 0\nmax = 90\n"])
def test_edges_may_repeat_the_range(range_given):
    schema = Schema.from_toml(one(f"kind = 'integer'\n{range_given}edges = [0, 18, 65, 90]"))
    assert schema.attributes[0].labels == ("0..17", "18..64", "65..90")


def test_the_range_adds_the_outer_edges():
    schema = Schema.from_toml(one("kind = 'integer'\nmin = 0\nmax = 90\nedges = [18, 65]"))
    assert schema.attributes[0].labels == ("0..17", "18..64", "65..90")
