"""The settings and the steps of DistDiffGen: divisions, then one noisy count."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import partial

from common.errors import InputError
from common.exchanges.choice import choice_step
from common.exchanges.sums import sum_step
from common.exchanges.two_party import joint_choice_step
from common.methods.distdiffgen.cuts import Cuts, LeafModel, leaf_request
from common.methods.distdiffgen.divisions import SCORES, DivisionChoice, JointDivision
from common.privacy import sensitivity
from common.privacy.budget import split
from common.privacy.noise_law import DiscreteLaplace
from common.schema.toml import one_of, text
from common.study.document import Study
from common.study.method import Method, PublicDecision, Setting, between, parts, read_settings
from common.study.script import Fit, Script, chosen, summed
from common.study.steps import Step

TOGETHER, IN_TURN = "together", "in turn"
SETTINGS = {
    "target": Setting(text, "required", "the attribute to be predicted"),
    "divisions": Setting(between(0, 200), "10", "how many groups are divided"),
    "choices": Setting(
        one_of((TOGETHER, IN_TURN)), TOGETHER, f"{TOGETHER}, or {IN_TURN}: who chooses a division"
    ),
    "score": Setting(one_of(SCORES), "max", f"of a division: {' or '.join(SCORES)}"),
    "budget": Setting(parts(2), "1:1", "how epsilon is split: divisions : counts"),
    "most_cells": Setting(between(4, 1 << 24), str(1 << 20), "cap on the combinations of groups"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DistDiffGenSettings:
    """What a study chooses about DistDiffGen; docs/papers.md has an example."""

    target: int
    divisions: int = 10
    choices: str = TOGETHER
    score: str = "max"
    budget: tuple[Fraction, ...] = (Fraction(1), Fraction(1))
    most_cells: int = 1 << 20

    @classmethod
    def of(cls, study: Study) -> DistDiffGenSettings:
        """Read the settings of a study; InputError if one is missing or not allowed."""
        values = read_settings(study, SETTINGS, required=["target"])
        name = values.pop("target")
        if name not in study.schema.names:
            raise InputError(f"distdiffgen.target: there is no attribute {name!r}")
        return cls(target=study.schema.position(name), **values)


def distdiffgen(study: Study) -> Script[Fit]:
    """Divide, one group after the other, then count every combination."""
    settings, sizes = DistDiffGenSettings.of(study), tuple(study.schema.sizes)
    epsilon = study.method_promise.budget
    cuts = Cuts.start(study.schema, settings.target)
    spent = dict.fromkeys(study.parties, Fraction(0))
    for number in range(settings.divisions):
        if not cuts.divisions(settings.most_cells):
            break
        choice, step = _division(study, settings, number, cuts)
        cuts = cuts.divided(choice.division((yield from chosen(step))))
        for name, cost in step.costs.items():
            spent[name] += cost
    moved = sensitivity.histograms(1)
    (counts,) = yield from summed(
        sum_step(
            name="counts",
            phase="counts",
            parties=tuple(spent),
            request=leaf_request(cuts, sizes),
            sensitivity=moved,
            law=DiscreteLaplace.costing(epsilon - max(spent.values()), sensitivity=moved),
        )
    )
    return partial(LeafModel, cuts, sizes, counts)


def _division(
    study: Study, settings: DistDiffGenSettings, number: int, cuts: Cuts
) -> tuple[DivisionChoice, Step]:
    """Return one choice: of both parties, or of the party whose turn it is."""
    part, _ = split(study.method_promise.budget, settings.budget)
    party, partner = study.members[number % 2], study.members[1 - number % 2]
    name = f"division {number + 1} of {settings.divisions}"
    if settings.choices == TOGETHER:
        epsilon = part / settings.divisions
        joint = JointDivision(
            cuts=cuts,
            score=settings.score,
            most_cells=settings.most_cells,
            epsilon=epsilon,
            rows=(partner.rows, party.rows),
        )
        return joint, joint_choice_step(
            name=name,
            phase="divisions",
            party=party.name,
            partner=partner.name,
            choice=joint,
            epsilon=epsilon,
            mechanism="report noisy max, discrete Laplace, in a two-party computation",
        )
    epsilon = part / ((settings.divisions + 1 - number % 2) // 2)
    choice = DivisionChoice(
        cuts=cuts, score=settings.score, most_cells=settings.most_cells, epsilon=epsilon
    )
    return choice, choice_step(
        name=f"{name} by {party.name}",
        phase="divisions",
        party=party.name,
        choice=choice,
        epsilon=epsilon,
        mechanism="exponential mechanism",
    )


def decisions(study: Study) -> list[PublicDecision]:
    settings = DistDiffGenSettings.of(study)
    how = f"at most {settings.divisions}, by {settings.score}, chosen {settings.choices}"
    return [
        PublicDecision("target", study.schema.names[settings.target]),
        PublicDecision("divisions", how),
        PublicDecision("counted cells", f"at most {settings.most_cells:,}"),
    ]


def assumes(study: Study) -> str:
    """Say what protection from the other party rests on, besides the sums."""
    if DistDiffGenSettings.of(study).choices == IN_TURN:
        return ""
    return (
        "both parties follow the protocol of the two-party computation that chooses divisions; "
        'with choices = "in turn" nothing rests on that'
    )


METHOD = Method(
    name="distdiffgen",
    summary="groups for one classification task, two owners",
    script=distdiffgen,
    encodings=("own",),
    single_turns=True,
    parties=2,
    settings=SETTINGS,
    decisions=decisions,
    assumes=assumes,
    place=6,
)
