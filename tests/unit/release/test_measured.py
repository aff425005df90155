"""What the report of a study shows of its published sums: against simulation and by hand."""

from fractions import Fraction

import numpy as np
import pytest

import parley
from common.analysis.diagnostics import PairVerdict, noise_caution
from common.crypto.identities.identity import Identity
from common.crypto.sums.plan import Noise
from common.exchanges.sums import sum_step
from common.methods.subn_plus.requests import Contrasts, GroupedTables
from common.privacy.noise_law import DiscreteLaplace
from common.privacy.randomness import SeededRandomSource
from common.privacy.sampling.polya import polya_shares
from common.privacy.sensitivity import Sensitivity
from common.release.measured import expected_errors, study_shares, study_tables
from common.study.document import Study
from common.study.members import Member
from common.study.requests import TableRequest, encode_cells
from parley.simulation.population import demo_schema_toml, make_population

SCHEMA = parley.Schema.from_toml(
    """
attribute = [
  { name = "letter", kind = "categorical", values = ["a", "b", "c"] },
  { name = "colour", kind = "categorical", values = ["red", "green"] },
]
"""
)
PARTIES = ("north", "east", "south")


def study(noise=Noise.DISTRIBUTED, colluders=1):
    source = SeededRandomSource(1)
    members = tuple(
        Member(name=name, rows=100, identity=Identity.generate(source).public) for name in PARTIES
    )
    return Study(
        name="s", schema=SCHEMA, members=members, epsilon=Fraction(1), noise=noise,
        profile="paper" if noise is Noise.ONE_SHARE else "sound",
        colluders=colluders,
    )  # fmt: skip


def step(request, *, scale, parties=PARTIES, name="tables"):
    return sum_step(
        name=name, phase=name, parties=parties, request=request, sensitivity=Sensitivity.moving(2),
        law=DiscreteLaplace(Fraction(scale)),
    )  # fmt: skip


def published(*cells):
    return encode_cells(np.array(cells))


ALONE = TableRequest(((0,),), SCHEMA.sizes)
TOGETHER = TableRequest(((0, 1),), SCHEMA.sizes)


def test_shares_come_from_the_published_counts():
    shares = study_shares(study(), [step(ALONE, scale=5)], [published(150, 90, 63)])
    assert shares[0] == pytest.approx([0.5, 0.3, 0.21])
    assert shares[1] is None


def test_the_table_with_less_noise_is_shown():
    steps = [step(ALONE, scale=5), step(TOGETHER, scale=4)]
    results = [published(150, 90, 60), published(60, 60, 60, 60, 30, 30)]
    # Two cells of scale 4 make more noise than one of scale 5; the colour is only in the pair.
    letter, colour = study_shares(study(), steps, results)
    assert letter == pytest.approx([0.5, 0.3, 0.2])
    assert colour == pytest.approx([0.5, 0.5])
    finer = [step(ALONE, scale=5), step(TOGETHER, scale=3)]
    assert study_shares(study(), finer, results)[0] == pytest.approx([0.4, 0.4, 0.2])


def test_groups_bits_and_sums_of_some_parties_show_no_distribution():
    grouped = GroupedTables(((0,),), ((0, 0, 1), (0, 1)))
    some = step(ALONE, scale=5, parties=PARTIES[:2])
    bits = TableRequest(((0,),), (2, 2, 2), in_bits=True)
    results = [published(200, 100), published(10, 20, 30), published(100, 200)]
    assert study_shares(study(), [step(grouped, scale=5), some, step(bits, scale=5)], results) == [
        None, None,
    ]  # fmt: skip


def errors(steps, order, of=None):
    return expected_errors(study_tables(of or study(), steps), order)


def test_a_pair_is_one_line_whatever_it_was_counted_in():
    grouped = GroupedTables(((0, 1),), ((0, 0, 1), (0, 1)))
    steps = [step(ALONE, scale=9), step(grouped, scale=9, name="views")]
    ((letter,), (colour,)) = (error.attributes for error in errors(steps, 1))
    assert (letter, colour) == (0, 1)
    (pair,) = errors(steps, 2)
    assert (pair.attributes, pair.cells, pair.grouped) == ((0, 1), 4, True)
    (fine,) = errors([*steps, step(TOGETHER, scale=90)], 2)
    assert (fine.cells, fine.grouped) == (6, False)  # a table of all values tells more


def test_bits_are_no_columns():
    bits = TableRequest(((0,),), (2, 2, 2), in_bits=True)
    assert errors([step(bits, scale=9, name="bits")], 1) == []


@pytest.mark.parametrize(("noise", "shares"), [(Noise.DISTRIBUTED, 3), (Noise.ONE_SHARE, 2)])
def test_deviation_and_distance_are_those_of_the_parties_noise(noise, shares):
    """Three parties of whom one may collude: 3 Polya shares of which any 2 are one Laplace."""
    (error,) = errors([step(ALONE, scale=20)], 1, study(noise))
    source = SeededRandomSource(5)
    drawn = sum(polya_shares(Fraction(20), 200_000, source, parties=2) for _ in range(shares))
    assert error.deviation == pytest.approx(drawn.std(), rel=0.02)
    # The forecast takes the noise for normal: a little more than that of a single draw.
    simulated = np.abs(drawn).mean() * 3 / (2 * 300)
    assert simulated < error.distance < 1.2 * simulated


def test_shares_of_noise_by_hand():
    assert study().noise_shares(3) == Fraction(3, 2)
    assert study(colluders=2).noise_shares(3) == 3
    assert study(Noise.ONE_SHARE).noise_shares(3) == 1
    assert study().noise_shares(1) == 1


def test_a_column_is_judged_by_the_table_that_tells_most_about_it():
    steps = [step(ALONE, scale=5), step(ALONE, scale=50, name="again")]
    (letter,) = errors(steps, 1)
    assert letter.deviation == pytest.approx(np.sqrt(1.5 * 2) * 5, rel=0.02)
    assert noise_caution([letter], SCHEMA.names) is None
    both = errors([*steps, step(TOGETHER, scale=400)], 1)
    assert both[0] == letter
    assert "1 of 2 columns (colour)" in noise_caution(both, SCHEMA.names)


def test_contrasts_tell_the_tables_of_their_pairs():
    """A study with a delta asks no table of a pair, and yet says how good each one is."""
    names = ["age", "smoker", "chronic_illness", "education", "income"]
    people = make_population(6_000, seed=1)[names]
    whole = parley.Schema.from_toml(demo_schema_toml())
    schema = parley.Schema(tuple(a for a in whole.attributes if a.name in people.columns))
    made = parley.simulate(
        [people[::2], people[1::2]], schema, epsilon=8, delta="1/1000000", method="subn+",
        aggregation="clear", seed=1,
    )  # fmt: skip
    assert any(isinstance(step.request, Contrasts) for step in made.steps)
    pairs = made.diagnostics.pairs
    assert pairs[0, 2].verdict is PairVerdict.SAFE
    tables = study_tables(made.study, made.steps)
    told = {error.attributes: error for error in expected_errors(tables, 2)}
    assert told.keys() == pairs.keys()
    assert 0 < told[1, 2].deviation < 100
    margins = [step for step in made.steps if step.name != "correlations"]
    assert expected_errors(tables, 1) == expected_errors(study_tables(made.study, margins), 1)
