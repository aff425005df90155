"""What an owner sees before approving a study: what it costs, what it asks, what leaves the house.

A pure function of the study, the policy, the circumstances and the plan's steps. Nothing in it
comes from the curator: the steps are those that this party derives by itself. The figures are of
the study; none of them depends on the rows, so a review may be public.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction

from common.crypto.sums.plan import Aggregation
from common.methods.registry import method_of
from common.privacy.budget import shown as printed
from common.privacy.spending import fraction_words as shown
from common.privacy.statement import Protection, suspicion, unit_of_privacy, what_delta_means
from common.release.spreadsheet import formula_warning
from common.schema.encoder import describe
from common.study.accounting import protections_of
from common.study.document import Study
from common.study.steps import Step
from common.wording import many
from party.owner.policy import Circumstances, Policy

_TRAVELS = {
    Aggregation.PAILLIER: "encrypted under the curator's key and added up on the way, so that the "
    "curator decrypts {} and nothing else",
    Aggregation.MASKED: "under masks that cancel in a sum, so that the curator sees {} and nothing "
    "else",
    Aggregation.CLEAR: "IN THE CLEAR, each party's by itself",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedStep:
    """A step as it concerns this party."""

    phase: str  # what it belongs to
    cost: Fraction  # what it costs our rows, in the currency of the study's promise
    tables: int = 0  # how many tables of counts it asks of us
    cells: int = 0  # how many integers they are, together
    choices: int = 0  # how many outcomes of mechanisms it asks of us
    # Whose rows are in a sum, or a joint choice, that ours come into, ours included; 0 if they do
    # not. Of several steps, the fewest.
    owners: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """A study through one owner's eyes."""

    study: str
    digest: str  # what an approval signs, in hexadecimal
    party: str  # whose eyes
    signer: str | None  # the signer's fingerprint; None without a signature
    purpose: tuple[str, ...]  # what the study is for, who gets its table, whom to ask, until when
    claimed: Fraction  # the epsilon that the study's method is run with
    cost: Fraction  # the epsilon that it charges our rows, at the study's delta
    delta: Fraction  # of the study; 0 for pure epsilon
    delta_means: str  # in words; empty for pure epsilon
    currency: str  # of the phases' costs: epsilon, or rho
    spent: Fraction  # what other studies charged before, as epsilon at the largest delta of them
    left: Fraction  # what the policy leaves for later studies, when this one is done
    about: tuple[str, ...]  # what is published in the end, and about how many columns of ours
    columns: tuple[str, ...]  # those, and what they may contain
    members: tuple[str, ...]  # who takes part, with how many rows and which identity
    phases: tuple[PlannedStep, ...]  # the steps, put together phase by phase
    leaves: tuple[str, ...]  # what leaves the building
    protections: tuple[Protection, ...]  # who learns what
    limits: tuple[str, ...]  # what the epsilon does not promise, and until when we can stop
    reasons_against: tuple[str, ...]  # what the policy says against it; empty if it allows it

    @property
    def at_delta(self) -> str:
        """What is added where an epsilon is named."""
        return f" and delta {printed(self.delta):g}" if self.delta else ""

    def as_json(self) -> Mapping[str, object]:
        """Plain values; epsilons as exact fractions in text."""
        document = asdict(self)
        for key in ("claimed", "cost", "delta", "spent", "left"):
            document[key] = str(document[key])
        for phase in document["phases"]:
            phase["cost"] = str(phase["cost"])
        for protection in document["protections"]:
            if protection["epsilon"] is not None:
                protection["epsilon"] = str(protection["epsilon"])
        return document

    def text(self) -> str:
        phases = [_phase_text(phase, self.currency) for phase in self.phases]
        verdict = "Our policy REFUSES it" if self.reasons_against else "Our policy allows it"
        sections = {
            "What it is for": self.purpose,
            "What it costs": self._cost_lines(),
            "What it is about": (*self.about, *(f"  {line}" for line in self.columns)),
            "Who takes part": self.members,
            "What it asks": phases,
            "What leaves the building": self.leaves,
            "Who is protected from whom": [_protection_text(each) for each in self.protections],
            "What is not promised": self.limits,
            verdict: self.reasons_against,
        }
        lines = [
            f"Study {self.study!r}, as {self.party!r} sees it",
            f"  digest {self.digest}",
            f"  signed by {self.signer}" if self.signer else "  not signed",
        ]
        for title, content in sections.items():
            lines += ["", title, *(f"  {line}" for line in content)]
        return "\n".join(lines) + "\n"

    def _cost_lines(self) -> list[str]:
        claims = "" if self.cost == self.claimed else f"; the study claims {shown(self.claimed)}"
        likelier = (
            "what is published is at most exp(epsilon) times likelier with one row than another"
        )
        return [
            f"epsilon {shown(self.cost)}{self.at_delta} for each of our rows{claims}",
            suspicion(float(self.cost)),
            likelier + (", but for a probability of delta" if self.delta else ""),
            *([self.delta_means] if self.delta else []),
            f"{shown(self.spent)} spent before; {shown(self.left)} would be left",
        ]


def review(
    study: Study, policy: Policy, circumstances: Circumstances, steps: Sequence[PlannedStep]
) -> Review:
    """A study, for its owner to approve or not."""
    phases = _by_phase(steps)
    promise, cost = study.promise, circumstances.cost
    epsilon = promise.delivered(cost.paid)
    after = circumstances.spent_in_total + cost
    return Review(
        study=study.name,
        digest=study.digest.hex(),
        party=circumstances.party,
        signer=circumstances.signer,
        purpose=tuple(_purpose(study)),
        claimed=study.epsilon,
        cost=epsilon,
        delta=study.delta,
        delta_means=what_delta_means(promise, cost.paid),
        currency=promise.currency,
        spent=circumstances.spent_in_total.epsilon,
        left=policy.epsilon_in_total - after.epsilon,
        about=(*_about(study), *_people(study, circumstances), *_criteria(study)),
        columns=tuple(f"{each.name}: {describe(each)}" for each in study.schema.attributes),
        members=tuple(_members(study, circumstances.party)),
        phases=phases,
        leaves=tuple(_leaves(study, phases)),
        protections=tuple(protections_of(study, method_of(study), epsilon)),
        limits=tuple(_limits(study, policy, circumstances)),
        reasons_against=tuple(policy.reasons_against(study, circumstances)),
    )


def planned(step: Step, party: str, *, order: Sequence[str]) -> PlannedStep:
    """A step as it concerns a party; `order` is that of the parties' turns."""
    cost = step.most_costs(order).get(party, Fraction(0))
    if party not in step.parties:
        return PlannedStep(phase=step.phase, cost=cost)
    return PlannedStep(
        phase=step.phase,
        cost=cost,
        tables=len(step.links),
        cells=step.cells,
        choices=step.choices,
        owners=step.owners_with(party),
    )


def _by_phase(steps: Sequence[PlannedStep]) -> tuple[PlannedStep, ...]:
    phases: dict[str, PlannedStep] = {}
    for step in steps:
        sofar = phases.get(step.phase, PlannedStep(phase=step.phase, cost=Fraction(0)))
        phases[step.phase] = PlannedStep(
            phase=step.phase,
            cost=sofar.cost + step.cost,
            tables=sofar.tables + step.tables,
            cells=sofar.cells + step.cells,
            choices=sofar.choices + step.choices,
            owners=fewest_owners((sofar, step)) or 0,
        )
    return tuple(phases.values())


def fewest_owners(steps: Iterable[PlannedStep]) -> int | None:
    """How many owners' rows are in the smallest sum that ours are in; None if they are in none."""
    return min((step.owners for step in steps if step.owners), default=None)


def _purpose(study: Study) -> list[str]:
    said = {
        "for": study.recipient,
        "contact": study.contact,
        "ethics reference": study.ethics,
        "expires": "" if study.expires is None else f"after {study.expires} (UTC)",
    }
    missing = "the study does not say what its table is for: ask who proposes it"
    return [study.purpose or missing, *(f"{key}: {text}" for key, text in said.items() if text)]


def _about(study: Study) -> list[str]:
    rows = study.output_rows or sum(member.rows for member in study.members)
    columns = study.schema.attributes
    method = f"method {study.method}, profile {study.profile}"
    decisions = method_of(study).decisions(study)
    formulas = formula_warning(study.schema)
    return [
        f"it publishes {many(rows, 'synthetic row')} and the model they are drawn from: {method}",
        *(f"{each.name}: {each.value}" for each in decisions),
        *(each.caution for each in decisions if each.caution),
        *_prior(study),
        *([] if formulas is None else [formulas]),
        f"it reads {many(len(columns), 'column')} of ours, and no other:",
    ]


def _prior(study: Study) -> list[str]:
    if not study.prior:
        return []
    words = (
        f"it builds on an earlier release ({study.prior[:16]}): noisy sums are drawn towards its "
        "table. That is public, so it costs our rows nothing; what leaves has the same noise"
    )
    return [words]


def _members(study: Study, us: str) -> list[str]:
    return [
        f"{member.name}{' (us)' if member.name == us else ''}: {many(member.rows, 'row')}, "
        f"identity {member.identity.fingerprint}"
        for member in study.members
    ]


def _leaves(study: Study, phases: Sequence[PlannedStep]) -> list[str]:
    tables, cells = sum(p.tables for p in phases), sum(p.cells for p in phases)
    alone = sum(p.choices for p in phases if not p.owners)
    jointly = sum(p.choices for p in phases if p.owners)
    lines = []
    if tables and study.may_miss:
        lines.append(
            f"keys for sums that can do without up to {many(study.may_miss, 'party')}, sealed to "
            "other parties; if one goes missing, later sums are of the rest"
        )
    if tables:
        lines.append(
            f"{many(tables, 'table')} of counts ({many(cells, 'integer')}) with noise in them, "
            f"{_TRAVELS[study.aggregation].format(_sums(study, fewest_owners(phases)))}"
        )
    if alone:
        lines.append(
            f"{many(alone, 'choice')} made by a differentially private mechanism on our rows "
            "alone, published as they are"
        )
    if jointly:
        lines.append(
            f"{many(jointly, 'choice')} made by a differentially private mechanism on our rows and "
            "the other party's, computed in sealed messages between the two: only the outcome is "
            "published"
        )
    lines.append("our number of rows, which the study makes public, and when we answer")
    lines.append("never: a row, an exact count, our budget, or the reason of a refusal")
    return lines


def _sums(study: Study, fewest: int | None) -> str:
    """What the curator learns of what is added up."""
    parties = len(study.members)
    if fewest is None or fewest == parties:
        return "the sum of all parties"
    if fewest == 1:
        return "sums, SOME OF THEM OF OUR ROWS ALONE,"
    return f"sums, the smallest of them of {fewest} of the {parties} parties,"


def _people(study: Study, circumstances: Circumstances) -> list[str]:
    """Who is protected, and what became of our rows for it: the second is for us alone."""
    if not study.rows_per_person:
        return []
    note = f"; for our eyes only: {circumstances.note}" if circumstances.note else ""
    return [f"protects {unit_of_privacy(study.promise)}{note}"]


def _criteria(study: Study) -> list[str]:
    """What is measured in our rows to tell how good the model is, and its part of the cost."""
    if not study.criteria:
        return []
    return [
        f"epsilon {shown(study.criteria_epsilon)} of the cost tells how good the model is:",
        *(f"criterion: {each.words}" for each in study.criteria),
    ]


def _limits(study: Study, policy: Policy, circumstances: Circumstances) -> list[str]:
    """What an owner who signs for the people in the table has to know besides."""
    cost = circumstances.cost
    two_rows = study.promise.delivered(cost.paid, rows=2)
    more = "with k rows more than k times as much" if study.delta else "with k rows k times as much"
    twice = "more than twice" if study.delta else "twice"
    after = circumstances.spent_in_total + cost
    unknown = (
        "that we know who signed it: our policy names no signers, so compare the fingerprint with "
        "the one that its operator tells you"
    )
    person = (
        f"a person with two rows, both ours or one of another owner, pays {twice}: epsilon "
        f"{shown(two_rows)}; {more}"
    )
    if study.rows_per_person:
        person = "a person under two identifiers, or with more owners than agreed, pays twice"
    return [
        person,
        (
            f"studies add up: a row that was in all of ours will have paid {after.words()}, "
            "and what was published of it without Parley comes on top"
        ),
        "what is true of a group is true of its members: no epsilon hides that",
        (
            "what is charged stays charged: we can withdraw until the study is over, and nothing "
            "more leaves then; what is published cannot be called back"
        ),
        *([] if policy.signers else [unknown]),
    ]


def _phase_text(phase: PlannedStep, currency: str) -> str:
    parts = [f"{currency} {shown(phase.cost)}"]
    if phase.tables:
        parts.append(f"{many(phase.tables, 'table')} of {many(phase.cells, 'cell')} in all")
    if phase.choices:
        whose = "with the other party" if phase.owners else "of our own"
        parts.append(f"{many(phase.choices, 'choice')} {whose}")
    return f"{phase.phase}: {', '.join(parts)}"


def _protection_text(protection: Protection) -> str:
    word = "NOT PROTECTED from" if protection.epsilon is None else "protected from"
    return f"{word} {protection.against}: {protection.assumes}"
