"""Networks refuse what is not one, survive JSON, and say which tables they need."""

import json

import pytest

from common.bayes.conditionals import contains, needed_families
from common.bayes.domain import Domain, View
from common.bayes.network import Network, Pair
from common.errors import InputError

# age, education, workclass, title, income [Zhang17, Table 1]
PAPER = Network.from_parents({0: [], 1: [0], 2: [0, 1], 3: [0, 2], 4: [2, 3]})


def attributes(families):
    return [sorted(view.attribute for view in family) for family in families]


def test_the_papers_example_needs_three_tables():
    assert attributes(needed_families(PAPER)) == [[0, 1, 2], [0, 2, 3], [2, 3, 4]]


def test_the_four_attribute_example_needs_two_tables():
    network = Network.from_parents({0: [], 1: [0], 2: [0, 1], 3: [0, 2]})
    assert attributes(needed_families(network)) == [[0, 1, 2], [0, 2, 3]]


def test_an_older_example_has_degree_three():
    network = Network.from_parents({0: [], 1: [0], 2: [0], 3: [0, 1, 2], 4: [2, 3]})
    assert max(len(pair.parents) for pair in network.pairs) == 3
    assert attributes(needed_families(network)) == [[0, 1, 2, 3], [2, 3, 4]]


def test_a_coarser_family_lies_in_a_finer_one_but_not_the_reverse():
    fine, coarse = (View(1), View(0, 0)), (View(0, 1),)
    assert contains(fine, coarse)
    assert not contains(coarse, fine)


def test_networks_survive_json():
    network = Network((Pair(2), Pair(0, (View(2, 1),)), Pair(1, (View(0), View(2)))))
    assert Network.from_json(json.loads(json.dumps(network.to_json()))) == network
    assert network.edges == [(2, 0), (0, 1), (2, 1)]


@pytest.mark.parametrize(
    "pairs",
    [
        [Pair(0, (View(1),)), Pair(1)],
        [Pair(0), Pair(0)],
        [Pair(1), Pair(2)],
        [Pair(0), Pair(1), Pair(2, (View(1), View(0)))],
        [Pair(0), Pair(1, (View(0), View(0, 1)))],
    ],
    ids=["late parent", "twice", "missing", "unsorted", "same parent twice"],
)
def test_what_is_not_a_network_is_refused(pairs):
    with pytest.raises(InputError):
        Network(tuple(pairs))


@pytest.mark.parametrize(
    "document", [[{"child": 0}], [{"child": "x", "parents": []}], [3], {"a": 1}]
)
def test_damaged_documents_are_refused(document):
    with pytest.raises(InputError):
        Network.from_json(document)


def test_cycles_are_refused():
    with pytest.raises(InputError, match="cycle"):
        Network.from_parents({0: [1], 1: [0]})


def test_a_network_must_fit_the_table():
    with pytest.raises(InputError, match="attributes"):
        PAPER.check(Domain.flat([2] * 4))
    with pytest.raises(InputError, match="no level 1"):
        Network((Pair(0), Pair(1, (View(0, 1),)))).check(Domain.flat([2, 2]))
