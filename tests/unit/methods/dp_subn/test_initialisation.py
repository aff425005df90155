from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.bayes.privbayes.scores import mutual_information
from common.errors import RemoteProtocolError
from common.marginals import count
from common.methods.dp_subn.decisions import FamilyLimit
from common.methods.dp_subn.initialisation import PairChoice, turns_of_attributes
from common.methods.network_model import Variables
from common.privacy import sensitivity
from common.privacy.randomness import SeededRandomSource
from parley.simulation.in_process import RowsInMemory
from tests.harness.run_script import chain_tables, random_tables


@given(st.integers(2, 60), st.integers(1, 70))
def test_all_attributes_but_the_root_are_shared_out_and_nobody_idles_without_need(d, parties):
    shares = turns_of_attributes(attributes=d, parties=parties)
    assert len(shares) == parties
    assert sum(shares) == d - 1
    assert shares[0] >= 1
    assert min(shares) >= 1 or parties > d - 1


def choice_of(table, *, placed=(), take=2, limit=None, in_bits=False, epsilon=Fraction(1)):
    return PairChoice(
        variables=Variables(table.sizes, in_bits),
        placed=placed,
        take=take,
        limit=limit or FamilyLimit(1, 100),
        rows=table.rows,
        epsilon=epsilon,
    )


@pytest.mark.parametrize("in_bits", [False, True])
@pytest.mark.parametrize("rows", [1, 5, 300])
def test_a_party_of_any_size_places_its_attributes(rows, in_bits):
    (table,) = random_tables((2, 3, 4, 2), [rows]).values()
    choice = choice_of(table, in_bits=in_bits)
    payload = choice.run(RowsInMemory(table), SeededRandomSource(rows))
    families = choice.families(payload)
    assert len(families) == 3
    assert len(families[0]) == 1
    assert all(len(family) == 2 for family in families[1:])


def test_a_large_budget_finds_the_neighbours_of_a_chain():
    (table,) = chain_tables(5, [2000]).values()
    choice = choice_of(table, take=4, epsilon=Fraction(10**6))
    payload = choice.run(RowsInMemory(table), SeededRandomSource("chain"))
    edges = [(child, parent) for child, *parents in choice.families(payload) for parent in parents]
    assert all(abs(child - parent) == 1 for child, parent in edges)
    assert len(edges) == 4


def test_choices_follow_the_law_of_the_exponential_mechanism():
    """One child, two possible parents: the frequency accepts epsilon, not 0.7 or 1.3 times it."""
    (table,) = chain_tables(3, [100], flip=0.3).values()
    scores = [
        float(mutual_information(counted.reshape(1, 2, 2))[0])
        for counted in count(table, [(2, 0), (2, 1)])
    ]
    gap = abs(scores[1] - scores[0])
    bound = sensitivity.mutual_information(100, binary=True)
    epsilon = Fraction(np.log(3)) * 2 * bound / Fraction(gap)  # the better one has odds of 3 to 1
    choice = choice_of(table, placed=(0, 1), take=1, epsilon=epsilon)
    source, draws = SeededRandomSource("law"), 3000
    drawn = [choice.families(choice.run(RowsInMemory(table), source))[0][1] for _ in range(draws)]
    frequency = np.mean(np.array(drawn) == int(scores[1] > scores[0]))

    def deviations(factor):
        expected = 1 / (1 + 3.0**-factor)
        return abs(frequency - expected) / np.sqrt(expected * (1 - expected) / draws)

    assert deviations(1) < 3
    assert deviations(0.7) > 5
    assert deviations(1.3) > 5


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b"[" * 300,
        b"[[1,[0]]]",  # one pair too few
        b"[[1,[0]],[2,[0]],[3,[0]]]",  # one too many
        b"[[1,[0]],[2,[0]] ]",  # not canonical
        b"[[true,[0]],[2,[0]]]",
        b"[[1.0,[0]],[2,[0]]]",
        b'[["1",[0]],[2,[0]]]',
        b"[[1,[0]],[1,[0]]]",  # twice
        b"[[0,[]],[1,[0]]]",  # placed before
        b"[[9,[0]],[1,[0]]]",
        b"[[-1,[0]],[1,[0]]]",
        b"[[1,[2]],[2,[0]]]",  # parent not placed yet
        b"[[1,[1]],[2,[0]]]",  # its own parent
        b"[[1,[]],[2,[0]]]",  # fewer parents than there is room for
        b"[[1,[0]],[2,[0,1]]]",  # more
        b"[[1,[0,0]],[2,[0]]]",
        b"[[1,[0]],[2,[1e400]]]",
        b"\xff\xfe",
        b"[[1,[0]],[2,[" + b"1" * 200 + b"]]]",
        b" " * 100_000,
    ],
)
def test_what_no_turn_can_have_chosen_is_refused(payload):
    (table,) = random_tables((2, 2, 2, 2), [10]).values()
    choice = choice_of(table, placed=(0,))
    choice.check(b"[[1,[0]],[2,[1]]]")
    with pytest.raises(RemoteProtocolError):
        choice.check(payload)
