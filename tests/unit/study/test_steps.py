"""What the digest of a step stands for."""

from dataclasses import replace
from fractions import Fraction

from common.methods.variables import Variables
from common.privacy.laplace import DiscreteLaplace
from common.privacy.sensitivity import histograms
from common.study.steps import SumStep, step_digest

STEP = SumStep(
    name="histograms",
    phase="histograms",
    parties=("north", "east"),
    request=Variables((3, 5)).request([(0,), (1,)]),
    sensitivity=histograms(2),
    law=DiscreteLaplace(Fraction(4)),
)


def test_whatever_matters_about_a_step_changes_its_digest():
    others = [
        replace(STEP, name="other"),
        replace(STEP, parties=("east", "north")),
        replace(STEP, request=Variables((3, 5)).request([(1,), (0,)])),
        replace(STEP, request=Variables((3, 5), in_bits=True).request([(0,), (1,)])),
        replace(STEP, sensitivity=histograms(1)),
        replace(STEP, law=DiscreteLaplace(Fraction(5))),
    ]
    digests = {step_digest(b"history", 3, step) for step in [STEP, *others]}
    digests |= {step_digest(b"another", 3, STEP), step_digest(b"history", 4, STEP)}
    assert len(digests) == len(others) + 3
    assert step_digest(b"history", 3, replace(STEP, phase="said otherwise")) in digests


def test_every_party_pays_what_the_law_costs():
    assert STEP.costs == {"north": 1, "east": 1}
