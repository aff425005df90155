"""Networks refuse what is not one and survive JSON; conditionals bear any noise."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from common.bayes.domain import Domain, View
from common.bayes.network import (
    Network,
    Pair,
    conditionals_from_marginals,
    contains,
    needed_families,
    normalise_columns,
    sum_out,
)
from common.bayes.privbayes.scores import mutual_information
from common.errors import InputError, LocalError
from common.marginals import count
from common.schema.codes import Codes

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


WIDTH = 5


def random_rows(rows=500, seed=0, width=WIDTH):
    generator = np.random.default_rng(seed)
    law = generator.dirichlet(np.full(2**width, 0.3))
    drawn = generator.choice(2**width, rows, p=law)
    return Codes.from_columns([(drawn >> j) & 1 for j in range(width)], [2] * width)


def exact_tables(codes, network, domain):
    expanded, columns = domain.expand(codes), {v: i for i, v in enumerate(domain.views)}
    families = needed_families(network)
    found = count(expanded, [[columns[v] for v in family] for family in families])
    return dict(zip(families, found, strict=True))


def joint_of_model(network, domain, conditionals):
    """The full joint distribution, by multiplying the conditionals out."""
    shape = domain.sizes
    joint = np.ones(shape)
    cells = np.indices(shape)
    for pair, table in zip(network.pairs, conditionals, strict=True):
        configuration = np.zeros(shape, dtype=int)
        for view in pair.parents:
            groups = domain.levels[view.attribute][view.level][cells[view.attribute]]
            configuration = configuration * domain.size(view) + groups
        joint *= table[configuration, cells[pair.child]]
    return joint


def margin(joint, attributes):
    rest = tuple(a for a in range(joint.ndim) if a not in attributes)
    return joint.sum(axis=rest)


def degree_network(degree, width=WIDTH):
    """Attribute i has the `degree` attributes before it as parents."""
    return Network.from_parents({i: range(max(0, i - degree), i) for i in range(width)})


@pytest.mark.parametrize("degree", [1, 2, 4])
def test_without_noise_the_model_is_exact_where_it_can_be(degree):
    codes, domain = random_rows(), Domain.flat([2] * WIDTH)
    network = degree_network(degree)
    conditionals = conditionals_from_marginals(
        network, domain, exact_tables(codes, network, domain)
    )
    joint = joint_of_model(network, domain, conditionals)
    (truth,) = count(codes, [range(WIDTH)])
    truth = truth / codes.rows
    first = list(range(degree + 1))
    assert margin(joint, first) == pytest.approx(margin(truth, first), abs=1e-12)
    if degree == 1:
        for child in range(1, WIDTH):
            family = [child - 1, child]
            assert margin(joint, family) == pytest.approx(margin(truth, family), abs=1e-12)
    if degree == WIDTH - 1:
        assert joint == pytest.approx(truth, abs=1e-12)


def test_a_family_across_two_others_need_not_be_exact():
    """A, B|A, C|AB, D|AB, E|CD: nothing holds the joint of C and D."""
    network = Network.from_parents({0: [], 1: [0], 2: [0, 1], 3: [0, 1], 4: [2, 3]})
    generator = np.random.default_rng(3)
    a, b = generator.integers(0, 2, (2, 2000))
    c = generator.integers(0, 2, 2000)
    codes = Codes.from_columns([a, b, c, c, c], [2] * 5)
    domain = Domain.flat([2] * 5)
    conditionals = conditionals_from_marginals(
        network, domain, exact_tables(codes, network, domain)
    )
    joint = joint_of_model(network, domain, conditionals)
    (truth,) = count(codes, [(2, 3)])
    assert np.abs(margin(joint, [2, 3]) - truth / codes.rows).sum() / 2 > 0.1


def test_divergence_equals_entropies_less_information():
    """KL(Pr || Pr_N) = - sum I(X, P) + sum H(X) - H(A) [Zhang17, Eq. 6]."""

    def entropy(p):
        p = p[p > 0]
        return -(p * np.log2(p)).sum()

    codes, domain = random_rows(seed=4), Domain.flat([2] * WIDTH)
    network = degree_network(2)
    tables = exact_tables(codes, network, domain)
    joint = joint_of_model(network, domain, conditionals_from_marginals(network, domain, tables))
    truth = count(codes, [range(WIDTH)])[0] / codes.rows
    seen = truth > 0
    divergence = (truth[seen] * np.log2(truth[seen] / joint[seen])).sum()
    information = sum(
        mutual_information(t.reshape(1, 2, -1))[0] / codes.rows
        for t in count(codes, [[v.attribute for v in p.family] for p in network.pairs[1:]])
    )
    singles = sum(entropy(margin(truth, [a])) for a in range(WIDTH))
    assert divergence == pytest.approx(singles - information - entropy(truth), abs=1e-9)


def test_the_first_conditionals_come_from_the_clique_table():
    codes, domain = random_rows(seed=5), Domain.flat([2] * WIDTH)
    network = degree_network(2)
    noise = np.random.default_rng(5)
    tables = {
        family: table + noise.integers(-40, 40, table.shape)
        for family, table in exact_tables(codes, network, domain).items()
    }
    conditionals = conditionals_from_marginals(network, domain, tables)
    clique = (View(2), View(0), View(1))
    assert clique in tables
    assert network.pairs[1].family not in tables
    positive = np.maximum(tables[clique], 0).astype(float)  # axes 2, 0, 1
    expected_first = positive.sum(axis=(0, 2))
    assert conditionals[0] == pytest.approx((expected_first / expected_first.sum())[None])
    expected_second = positive.sum(axis=0).T  # (child 1, parent 0)
    assert conditionals[1] == pytest.approx((expected_second / expected_second.sum(axis=0)).T)


@settings(max_examples=200, deadline=None)
@given(hnp.arrays(np.int64, (3, 4), elements=st.integers(-20, 5)))
def test_any_noise_gives_proper_distributions(table):
    domain = Domain.flat([3, 4])
    network = Network((Pair(1), Pair(0, (View(1),))))
    for conditional in conditionals_from_marginals(network, domain, {(View(0), View(1)): table}):
        assert np.isfinite(conditional).all()
        assert (conditional >= 0).all()
        assert conditional.sum(axis=1) == pytest.approx(1)


def test_all_negative_tables_become_uniform():
    assert normalise_columns(np.zeros((3, 2))) == pytest.approx(np.full((2, 3), 1 / 3))


def test_parents_without_mass_fall_back_to_the_childs_own_distribution():
    joint = np.array([[6.0, 0.0], [2.0, 0.0]])
    assert normalise_columns(joint) == pytest.approx(np.full((2, 2), [0.75, 0.25]))


def test_summing_out_merges_groups_and_reorders_axes():
    domain = Domain(((np.arange(4), np.arange(4) // 2), (np.arange(3),), (np.arange(2),)))
    table = np.arange(24.0).reshape(3, 4, 2)
    axes = (View(1), View(0), View(2))
    found = sum_out(table, axes, (View(0, 1), View(1)), domain)
    expected = table.sum(axis=2).reshape(3, 2, 2).sum(axis=2).T
    assert np.array_equal(found, expected)
    with pytest.raises(LocalError, match="says nothing"):
        sum_out(table.sum(axis=2), axes[:2], (View(2),), domain)


def test_a_missing_table_is_refused():
    with pytest.raises(LocalError, match="no table"):
        conditionals_from_marginals(degree_network(1, 2), Domain.flat([2, 2]), {})
