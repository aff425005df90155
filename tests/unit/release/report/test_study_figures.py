"""What the report of a study shows of its published sums: against simulation and by hand."""

from fractions import Fraction

import numpy as np
import pytest

import parley
from common.crypto.identities.identity import Identity
from common.crypto.sums.plan import Noise
from common.methods.subn_plus.grouping import GroupedTables
from common.privacy.laplace import DiscreteLaplace
from common.privacy.randomness import SeededRandomSource
from common.privacy.sampling.polya import polya_shares
from common.privacy.sensitivity import Sensitivity
from common.release.report.released import caution
from common.release.report.study_figures import study_errors, study_shares
from common.study.document import Member, Study
from common.study.steps import SumStep, TableRequest

SCHEMA = parley.Schema.from_toml(
    """
[[attribute]]
name = "letter"
kind = "categorical"
values = ["a", "b", "c"]

[[attribute]]
name = "colour"
kind = "categorical"
values = ["red", "green"]
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
    return SumStep(
        name=name, phase=name, parties=parties, request=request, sensitivity=Sensitivity.moving(2),
        law=DiscreteLaplace(Fraction(scale)),
    )  # fmt: skip


def published(*cells):
    return np.array(cells, dtype="<i8").tobytes()


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


def test_errors_name_every_table_and_mark_groups():
    grouped = GroupedTables(((0, 1),), ((0, 0, 1), (0, 1)))
    errors = study_errors(study(), [step(ALONE, scale=9), step(grouped, scale=9, name="views")])
    assert [(e.attributes, e.cells) for e in errors] == [("letter", 3), ("letter*, colour", 4)]


def test_noise_in_no_table_has_a_deviation_and_no_distance():
    bits = TableRequest(((0,),), (2, 2, 2), in_bits=True)
    (error,) = study_errors(study(), [step(bits, scale=9, name="bits")])
    assert (error.attributes, error.distance) == ("bits", None)


@pytest.mark.parametrize(("noise", "shares"), [(Noise.DISTRIBUTED, 3), (Noise.ONE_SHARE, 2)])
def test_deviation_and_distance_are_those_of_the_parties_noise(noise, shares):
    """Three parties of whom one may collude: 3 Polya shares of which any 2 are one Laplace."""
    (error,) = study_errors(study(noise), [step(ALONE, scale=20)])
    source = SeededRandomSource(5)
    drawn = sum(polya_shares(Fraction(20), 2, 200_000, source) for _ in range(shares))
    assert error.deviation == pytest.approx(drawn.std(), rel=0.02)
    assert error.distance == pytest.approx(np.abs(drawn).mean() * 3 / (2 * 300), rel=0.02)


def test_shares_of_noise_by_hand():
    assert study().noise_shares(3) == Fraction(3, 2)
    assert study(colluders=2).noise_shares(3) == 3
    assert study(Noise.ONE_SHARE).noise_shares(3) == 1
    assert study().noise_shares(1) == 1


def test_a_table_tells_if_no_other_shows_one_of_its_attributes_with_less_noise():
    steps = [step(ALONE, scale=5), step(ALONE, scale=50, name="again"), step(TOGETHER, scale=400)]
    first, again, together = study_errors(study(), steps)
    assert (first.telling, again.telling) == (True, False)
    assert together.telling  # of the colour
    assert caution([first, again]) is None
    assert "(letter, colour)" in caution([first, again, together])
