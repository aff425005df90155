"""The names that a query may use."""

import pytest

from common.errors import InputError
from common.schema import Attribute, Node, Schema
from common.schema.attribute import Listed
from common.schema.hierarchy import leaf
from common.schema.vocabulary import Vocabulary
from common.wavelet.decisions import axes_of, axis_of


def test_a_bound_beyond_the_range_is_refused_where_such_values_are_counted_as_other():
    schema = Schema.from_toml(
        '[[attribute]]\nname = "x"\nkind = "integer"\nmin = 0\nmax = 9\nbins = 10\nother = true\n'
    )
    vocabulary = Vocabulary(schema.attributes, [axis.leaf_codes for axis in axes_of(schema)])
    with pytest.raises(InputError, match="from 0 to 9 only"):
        vocabulary.compile(["x in 3..20"])
    assert vocabulary.compile(["x >= 3"])[0].tolist() == [[3, 10]]


def test_long_lists_of_names_are_cut():
    values = ", ".join(f'"v{i}"' for i in range(40))
    schema = Schema.from_toml(
        f'[[attribute]]\nname = "x"\nkind = "categorical"\nvalues = [{values}]\n'
    )
    vocabulary = Vocabulary(schema.attributes, [axis.leaf_codes for axis in axes_of(schema)])
    with pytest.raises(InputError, match=r"v11 and 28 more"):
        vocabulary.compile(["x = w"])


def test_a_root_group_is_not_offered_when_special_codes_stand_beside_it():
    tree = Node("all", (Node("ab", (leaf("a", 0), leaf("b", 1))), leaf("c", 2)))
    for missing, offered in ((False, True), (True, False)):
        attribute = Attribute("x", "categorical", Listed(("a", "b", "c")), missing, tree=tree)
        vocabulary = Vocabulary([attribute], [axis_of(attribute).leaf_codes])
        assert vocabulary.compile(["x in ab"])[0].tolist() == [[0, 2]]
        if offered:
            assert vocabulary.compile(["x in all"])[0].tolist() == [[0, 3]]
        else:
            with pytest.raises(InputError, match="no value 'all'"):
                vocabulary.compile(["x in all"])


@pytest.mark.parametrize(
    ("query", "interval"),
    [
        ("seen in 2020-01-01..2020-12-31", (0, 1)),
        ("seen in 2020-01-01T00:00:00..2020-12-31T23:59:59", (0, 1)),
        ("seen <= 2020-12-31", (0, 1)),
        ("seen < 2021-01-01", (0, 1)),
        ("seen > 2020-12-31", (1, 2)),
        ("seen >= 2021-01-01", (1, 2)),
    ],
)
def test_a_date_among_times_is_the_whole_day(query, interval):
    schema = Schema.from_toml(
        '[[attribute]]\nname = "seen"\nkind = "datetime"\n'
        "edges = [2020-01-01T00:00:00, 2021-01-01T00:00:00, 2021-12-31T23:59:59]\n"
    )
    vocabulary = Vocabulary(schema.attributes, [axis.leaf_codes for axis in axes_of(schema)])
    assert tuple(vocabulary.compile([query])[0, 0]) == interval
