"""What an owner reads before approving a study: what it costs, what it asks, what leaves.

A review is a pure function of the study, the policy, the circumstances and the steps of a dry run.
Nothing in it comes from the curator: this party derives the steps by itself. The figures are of the
study; none of them depends on the rows, so a review may be public, but for the line that is for the
owner's eyes only.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

from common.crypto.sums.plan import Aggregation
from common.methods.registry import method_of
from common.privacy.budget import shown as printed
from common.privacy.spending import fraction_words as shown
from common.privacy.spending import short
from common.privacy.statement import Protection, suspicion, unit_of_privacy, what_delta_means
from common.release.measured import ExpectedError
from common.release.spreadsheet import formula_warning
from common.schema.encoder import describe
from common.study.accounting import protections_of
from common.study.document import Study
from common.wording import many, plural
from party.owner.dry_run import PlannedStep, by_phase, fewest_owners
from party.owner.policy import Circumstances, Policy, totals_of
from party.totals import Totals, Unit

_TRAVELS = {
    Aggregation.PAILLIER: "encrypted under the curator's key and added up on the way, so that the "
    "curator decrypts {} and nothing else",
    Aggregation.MASKED: "under masks that cancel in a sum, so that the curator sees {} and nothing "
    "else",
    Aggregation.CLEAR: "IN THE CLEAR, each party's by itself",
}


_REHEARSAL = (
    "This is a rehearsal. Our node simulates rows from the schema and reads none of ours, the "
    "ledger is not charged, and the release is marked as a rehearsal. All else is as in the study "
    "itself, which needs an approval of its own."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """A study as one owner sees it."""

    study: str
    digest: str  # what an approval signs, in hexadecimal
    party: str  # the owner's name in the study
    signer: str | None  # the signer's fingerprint; None without a signature
    curator: str  # the fingerprint of the curator that must sign the release; empty if none is
    rehearsal: bool  # whether no row of ours is read and nothing is charged
    unit: Unit  # whom the study protects
    warnings: tuple[str, ...]  # what an owner must see before anything else
    purpose: tuple[str, ...]  # what the study is for, who gets its table, whom to ask, until when
    claimed: Fraction  # the epsilon that the study's method is run with
    cost: Fraction  # the epsilon that it charges our rows, at the study's delta
    delta: Fraction  # of the study; 0 for pure epsilon
    delta_means: str  # in words; empty for pure epsilon
    currency: str  # of the phases' costs: epsilon, or rho
    # What other studies charged this unit before, as epsilon at the largest delta of them.
    spent: Fraction
    left: Fraction  # what the policy leaves for later studies, when this one is done
    cap: Fraction  # the most that all studies may cost
    left_this_year: Fraction | None  # the same of this year's cap; None without such a cap
    expected: tuple[str, ...]  # what the table will be good for, as far as public facts tell
    about: tuple[str, ...]  # what is published in the end, and about how many columns of ours
    columns: tuple[str, ...]  # those, and what they may contain
    members: tuple[str, ...]  # who takes part, with how many rows and which identity
    phases: tuple[PlannedStep, ...]  # the steps, put together phase by phase
    leaves: tuple[str, ...]  # what leaves the building
    protections: tuple[Protection, ...]  # who learns what
    limits: tuple[str, ...]  # what the epsilon does not promise, and until when we can stop
    reasons_against: tuple[str, ...]  # what the policy says against it; empty if it allows it

    @property
    def price(self) -> str:
        """What the study costs every row, or every person."""
        return f"epsilon {shown(self.cost)}" + (
            f" and delta {printed(self.delta):g}" if self.delta else ""
        )

    @property
    def charged(self) -> Fraction:
        """The most epsilon that an approval allows to be charged."""
        return Fraction(0) if self.rehearsal else self.cost

    @property
    def consent(self) -> str:
        """What an approval says yes to."""
        if self.rehearsal:
            return "Rehearse it with simulated rows, at no cost"
        return f"Spend {self.price} of every {self.unit} of ours on it"

    def as_json(self) -> dict[str, Any]:
        """Return plain values; fractions are exact, in text."""
        document: dict[str, Any] = json.loads(json.dumps(asdict(self), default=str))
        return document

    def text(self) -> str:
        verdict = "Our policy REFUSES it" if self.reasons_against else "Our policy allows it"
        sections = {
            **({"WARNING": self.warnings} if self.warnings else {}),
            "What it is for": self.purpose,
            "What it costs": self.cost_lines(),
            "What the table will be good for": self.expected,
            "What it is about": (*self.about, *(f"  {line}" for line in self.columns)),
            "Who takes part": self.members,
            "What it asks": [_phase_text(phase, self.currency) for phase in self.phases],
            "What leaves the building": self.leaves,
            "Who is protected from whom": list(map(_protection_text, self.protections)),
            "What is not promised": self.limits,
            verdict: self.reasons_against,
        }
        lines = [
            f"Study {self.study!r}, as {self.party!r} sees it",
            f"  digest {self.digest}",
            f"  signed by {self.signer}" if self.signer else "  not signed",
            f"  curator {self.curator or 'not pinned'}",
        ]
        for title, content in sections.items():
            lines += ["", title, *(f"  {line}" for line in content)]
        return "\n".join(lines) + "\n"

    @property
    def left_words(self) -> str:
        """What would be left of our caps."""
        year = "" if self.left_this_year is None else f"; {short(self.left_this_year)} this year"
        return f"{short(self.left)} of {short(self.cap)}{year}"

    def cost_lines(self) -> list[str]:
        claims = "" if self.cost == self.claimed else f"; the study claims {shown(self.claimed)}"
        rarely = ", but for a probability of delta" if self.delta else ""
        people = self.unit is Unit.PERSON
        unit = "each person of ours" if people else "each of our rows"
        one, other = ("all rows of one person", "others") if people else ("one row", "another")
        later = "nothing. The study itself will charge " if self.rehearsal else ""
        return [
            f"It charges {later}{self.price} for {unit}{claims}.",
            f"In words: {suspicion(float(self.cost), about=self.unit.value)}.",
            (
                f"Exactly: what is published is at most exp(epsilon) times likelier with {one} "
                f"than with {other}{rarely}."
            ),
            *([self.delta_means] if self.delta else []),
            (
                f"Earlier studies spent {shown(self.spent)} of a {self.unit}. Left for later "
                f"studies: {self.left_words}."
            ),
        ]


def review(
    study: Study, policy: Policy, circumstances: Circumstances, steps: Sequence[PlannedStep]
) -> Review:
    """Review a study, for its owner to approve or not."""
    phases = by_phase(steps)
    promise, cost = study.promise, circumstances.cost
    epsilon = promise.delivered(cost.paid)
    unit, spent = Unit.of(study.person_rows), circumstances.spent_in_total
    added = Totals() if study.rehearsal else totals_of(study, cost)
    return Review(
        study=study.name,
        digest=study.digest.hex(),
        party=circumstances.party,
        signer=study.signer,
        curator=study.curator,
        rehearsal=study.rehearsal,
        unit=unit,
        warnings=tuple(_warnings(study, circumstances)),
        purpose=tuple(_purpose(study)),
        claimed=study.epsilon,
        cost=epsilon,
        delta=study.delta,
        delta_means=what_delta_means(promise, cost.paid),
        currency=promise.currency,
        spent=spent.paid_by(unit).epsilon,
        left=_left(policy.epsilon_in_total, spent + added),
        cap=policy.epsilon_in_total,
        left_this_year=None
        if policy.epsilon_per_year is None
        else _left(policy.epsilon_per_year, circumstances.spent_in_year + added),
        expected=tuple(_expected(study, steps)),
        about=(*_about(study), *_people(study, circumstances), *_criteria(study), _reads(study)),
        columns=tuple(_columns(study)),
        members=tuple(_members(study, circumstances.party)),
        phases=phases,
        leaves=tuple(_leaves(study, phases)),
        protections=tuple(protections_of(study, method_of(study), epsilon)),
        limits=tuple(_limits(study, policy, circumstances)),
        reasons_against=tuple(policy.reasons_against(study, circumstances)),
    )


def _left(cap: Fraction, after: Totals) -> Fraction:
    """Return what a cap leaves for the unit that has paid most."""
    return cap - max(after.paid_by(unit).epsilon for unit in after.units)


def _expected(study: Study, steps: Sequence[PlannedStep]) -> list[str]:
    """Say what the method can do with so many rows and so much epsilon, before any row is read."""
    best: dict[tuple[int, ...], ExpectedError] = {}
    for error in (error for step in steps for error in step.errors):
        best[error.attributes] = min(best.get(error.attributes, error), error, key=lambda e: e.rank)
    lines = []
    if best:
        errors, names = list(best.values()), study.schema.names
        average = sum(error.distance for error in errors) / len(errors)
        worst = max(errors, key=lambda error: error.distance)
        least = 2 * max(error.deviation for error in errors)
        rows, whose = plural(study.schema.row), "" if study.schema.events is None else " of people"
        lines = [
            (
                f"Single columns{whose}: off by about {average:.1%} of the {rows}; worst "
                f"{worst.named(names)}, {worst.distance:.1%}"
            ),
            f"Groups of fewer than about {least:,.0f} {rows} will be mostly noise",
        ]
    return [
        *lines,
        "Pairs: the report says which are told well; parley plan forecasts them",
        *(decision.caution for decision in method_of(study).decisions(study) if decision.caution),
    ]


def _warnings(study: Study, circumstances: Circumstances) -> list[str]:
    """Say that a study is a rehearsal; warn where a study of rows meets a source of people."""
    warnings = [_REHEARSAL] if study.rehearsal else []
    if study.person_rows or not circumstances.source_of_people:
        return warnings
    two_rows = study.promise.delivered(circumstances.cost.paid, rows=2)
    return [
        *warnings,
        (
            "It protects single rows, and our source says whose row a row is (person). A person "
            f"with two rows pays epsilon {shown(two_rows)}, one with k rows {_more_than(study)}k "
            "times as much as a row. Ask for a study with rows_per_person, and say "
            'protects = "people" in the policy to refuse studies of single rows.'
        ),
    ]


def _more_than(study: Study) -> str:
    """Return what stands before "k times": with a delta, costs grow faster than rows."""
    return "more than " if study.delta else ""


def _purpose(study: Study) -> list[str]:
    texts = {
        "for": study.recipient,
        "contact": study.contact,
        "ethics reference": study.ethics,
        "expires": "" if study.expires is None else f"after {study.expires} (UTC)",
    }
    missing = "The study does not say what its table is for. Ask its proposer."
    return [
        study.purpose or missing,
        *(f"analysis: {analysis.words}" for analysis in study.analyses),
        *(f"{key}: {text}" for key, text in texts.items() if text),
    ]


def _about(study: Study) -> list[str]:
    rows = study.output_rows or study.rows
    formulas = formula_warning(study.schema)
    prior = (
        f"It builds on an earlier release ({study.prior[:16]}): noisy sums are drawn towards the "
        "table of that release. The release is public, so using it costs our rows nothing, and the "
        "noise in what leaves stays the same."
    )
    return [
        f"It publishes {_published(study, rows)}: method {study.method}, profile {study.profile}.",
        *([prior] if study.prior else []),
        *([] if formulas is None else [formulas]),
    ]


def _published(study: Study, rows: int) -> str:
    events = study.schema.events
    if not method_of(study).publishes_rows:
        return "noisy tables for its analyses, their estimates, and no synthetic rows"
    tables = many(rows, "synthetic row")
    if events is not None:
        tables = f"a table of {rows:,} synthetic people, a table of their {events.name}"
    return f"{tables} and the model they are drawn from"


def _people(study: Study, circumstances: Circumstances) -> list[str]:
    """Say who is protected, and what became of our rows for it: the second is for us alone."""
    if not study.person_rows:
        return []
    note = f" For our eyes only: {circumstances.note}." if circumstances.note else ""
    return [f"It protects {unit_of_privacy(study.promise)}.{_events(study)}{note}"]


def _events(study: Study) -> str:
    """Say what one promise to a person with all of her events means."""
    events = study.schema.events
    if events is None:
        return ""
    first = f"the first by {events.order!r}" if events.order else "the first of our table"
    return (
        f" One promise holds for a person and all of her {events.name}; at most {events.most} "
        f"{events.name} of a person count, {first}."
    )


def _reads(study: Study) -> str:
    events, columns = study.schema.events, many(len(study.schema.attributes), "column")
    joins = ""
    if events is not None:
        columns += f" of people and {many(len(events.attributes), 'column')} of {events.name}"
        order = f" and their {events.order!r}" if events.order else ""
        joins = f" but whose they are{order}, to join the two"
    if study.rehearsal:
        return (
            f"Our node simulates {columns}. The study itself will read them, and no other{joins}:"
        )
    return f"It reads {columns}{' of ours' if events is None else ''}, and no other{joins}:"


def _columns(study: Study) -> Iterator[str]:
    """Name the columns, and what they may contain."""
    yield from (f"{attribute.name}: {describe(attribute)}" for attribute in study.schema.attributes)
    if (events := study.schema.events) is None:
        return
    for attribute in events.attributes:
        yield f"{events.name}: {attribute.name}: {describe(attribute)}"


def _criteria(study: Study) -> list[str]:
    """Say what is measured in our rows to tell how good the model is, and its part of the cost."""
    if not study.criteria:
        return []
    return [
        f"Of the cost, epsilon {shown(study.criteria_epsilon)} tells how good the model is:",
        *(f"criterion: {criterion.words}" for criterion in study.criteria),
    ]


def _members(study: Study, us: str) -> list[str]:
    return [
        f"{member.name}{' (us)' if member.name == us else ''}: "
        f"{many(member.rows, study.schema.row)}, identity {member.identity.fingerprint}"
        for member in study.members
    ]


def _leaves(study: Study, phases: Sequence[PlannedStep]) -> list[str]:
    tables, cells = sum(p.tables for p in phases), sum(p.cells for p in phases)
    alone = sum(p.choices for p in phases if not p.owners)
    jointly = sum(p.choices for p in phases if p.owners)
    lines = []
    if tables and study.may_miss:
        lines.append(
            f"Keys for sums that can do without up to {many(study.may_miss, 'party')}, sealed to "
            "other parties. If a party goes missing, later sums are of the rest."
        )
    if tables:
        lines.append(
            f"{many(tables, 'table')} of counts ({many(cells, 'integer')}) with noise in them, "
            f"{_TRAVELS[study.aggregation].format(_sums(study, fewest_owners(phases)))}."
        )
    if alone:
        lines.append(
            f"{many(alone, 'choice')} made by a differentially private mechanism on our rows "
            "alone, and published."
        )
    if jointly:
        lines.append(
            f"{many(jointly, 'choice')} made by a differentially private mechanism on our rows and "
            "the other party's, computed in sealed messages between the two parties. Only the "
            "outcome is published."
        )
    number, events = f"number of {plural(study.schema.row)}", study.schema.events
    lines.append(f"Our {number}, which the study makes public, and the times of our answers.")
    number = "" if events is None else f"the number of our {events.name}, "
    lines.append(f"Never: a row, an exact count, {number}our budget, or the reason for a refusal.")
    return lines


def _sums(study: Study, fewest: int | None) -> str:
    """Name the sums that the curator learns."""
    parties = len(study.members)
    if fewest is None or fewest == parties:
        return "the sum of all parties"
    if fewest == 1:
        return "sums, SOME OF THEM OF OUR ROWS ALONE,"
    return f"sums, the smallest of them of {fewest} of the {parties} parties,"


def _limits(study: Study, policy: Policy, circumstances: Circumstances) -> list[str]:
    """Say what else an owner has to know who signs for the people in the table."""
    cost, than = circumstances.cost, _more_than(study)
    unit = Unit.of(study.person_rows)
    after = (circumstances.spent_in_total + totals_of(study, cost)).paid_by(unit)
    two_rows = study.promise.delivered(cost.paid, rows=2)
    person = (
        f"A person with two rows, both ours or one of another owner, pays {than}twice: epsilon "
        f"{shown(two_rows)}. With k rows a person pays {than}k times as much."
    )
    if study.person_rows:
        person = (
            "A person under two identifiers, or with twice as many owners as agreed, pays "
            f"{than}twice: epsilon {shown(two_rows)}."
        )
    unknown = (
        "Our policy names no signers, so it does not check who signed the study. Compare the "
        "fingerprint with the one that the study's operator tells you."
    )
    return [
        person,
        (
            f"Studies add up: a {unit} that was in all of ours will have paid {after.words()}"
            f"{_besides(study, circumstances)}. What was published of it without Parley comes on "
            "top."
        ),
        "What is true of a group is true of its members. No epsilon hides that.",
        (
            "What is charged stays charged. We can withdraw until the study is over, and nothing "
            "more leaves then; what is published cannot be called back."
        ),
        *([] if policy.signers else [unknown]),
    ]


def _besides(study: Study, circumstances: Circumstances) -> str:
    """Say what a person paid besides, in studies of rows."""
    rows = circumstances.spent_in_total.of_rows
    if not study.person_rows or not rows.paid:
        return ""
    return f" in studies of people, and for each of its rows {rows.words()} in studies of rows"


def _phase_text(phase: PlannedStep, currency: str) -> str:
    parts = [f"{currency} {shown(phase.cost)}"]
    if phase.tables:
        parts.append(f"{many(phase.tables, 'table')} of {many(phase.cells, 'cell')} in all")
    if phase.choices:
        whose = "with the other party" if phase.owners else "of our own"
        parts.append(f"{many(phase.choices, 'choice')} {whose}")
    return f"{phase.phase}: {', '.join(parts)}"


def _protection_text(protection: Protection) -> str:
    word = "NOT PROTECTED from" if protection.epsilon is None else "Protected from"
    return f"{word} {protection.against}: {protection.assumes}."
