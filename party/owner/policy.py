"""The owner's policy: a file of limits that no study and no curator can talk around.

The policy is checked before a study is approved, against the study itself and against what this
party knows: its rows, its ledger, who signed, who runs the curator. Everything outside is refused,
with every reason at once. `SAMPLE` is a policy with all keys, explained.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, NamedTuple, get_type_hints

from common.crypto.identities.identity import PublicIdentity
from common.crypto.paillier.keys import KEY_BITS
from common.crypto.sums.plan import Aggregation
from common.errors import InputError, located
from common.methods.registry import methods
from common.privacy.budget import parse_delta, parse_epsilon, shown
from common.privacy.spending import Spending
from common.schema.toml import (
    Parser,
    date,
    one_of,
    parse_toml,
    read_table,
    text_of,
    texts,
    whole,
    yes_or_no,
)
from common.study.document import PROFILES, Study
from common.study.ids import StudyId
from common.wording import many
from party.ledger import Caps
from party.totals import Totals

_DIGEST = re.compile("[0-9a-f]{16,64}")
_AGGREGATIONS = [kind.value for kind in Aggregation]
_METHODS = tuple(methods())
_PROTECTS = ("rows", "people")
_MOST_ROWS_OF_PEOPLE = 10_000_000  # the default of `max_rows` where a study protects people

SAMPLE = """\
# What this owner takes part in. Everything outside is refused.

[budget]                        # required
epsilon_per_study = "1"         # the most that one study may cost a row of ours, or a person
epsilon_in_total = "4"          # the most that all studies together may cost it, for ever; of
                                # rows and people, each for itself
epsilon_per_year = "2"          # the most in one calendar year (UTC); leave it out for no such cap
max_delta = "0"                 # 0 allows pure epsilon only: the promise that cannot fail. "1e-9"
                                # also allows studies whose epsilon may fail that often, and
                                # epsilon_in_total then holds at that delta
forgotten = []                  # digests of studies that a restored ledger lacks; see operations

[study]
min_parties = 3                 # in the study and in every sum that our rows are in: of two
                                # parties, each learns the other's noisy data
min_colluders = 1               # other parties that the noise must withstand; 0 trusts every one
min_key_bits = 3072             # of the curator's Paillier key
protects = "rows"               # "people" refuses studies that protect single rows: a person
                                # with k rows pays them k times. An automatic node whose source
                                # names a person needs this key, or one of the next two
rows_per_person = 1             # a study that protects people must count at least so many rows
owners_per_person = 1           # of a person, and protect people with rows at so many owners
methods = ["subn+", "dp-subn"]
profiles = ["sound"]            # "paper" charges more than it claims
aggregations = ["paillier", "masked"]   # "clear" hides nothing from the curator
signers = []                    # fingerprints of who may sign studies; [] accepts unsigned ones
curators = []                   # fingerprints of curators' authorities; [] accepts every curator

[data]
min_rows = 1000                 # fewer rows are mostly noise
max_rows = 5_000_000            # as the study states; 10_000_000 if it protects people and this
                                # key is left out
not_before = 2024-01-01         # refuse when our data is older than this
not_after = 2030-12-31          # or newer

columns_allowed = []            # the only columns that a study may name; [] is every one
columns_never = ["name"]        # columns that no study may name
keep_for_audit = 0              # days for which the keys of our answers are kept, sealed, after a
                                # study, so that an auditor can replay them; see docs/commitments.md

[approval]
automatic = false               # true: what this policy allows is approved without asking; needs
                                # signers, who vouch for it that the parties are real
rehearsals = false              # true: so are rehearsals, which read none of our rows and charge
                                # nothing, whoever signed them
"""


def _digests(value: object) -> tuple[str, ...]:
    listed = tuple(word.lower() for word in texts()(value))
    for digest in listed:
        if not _DIGEST.fullmatch(digest):
            raise InputError(f"expected at least 16 digits of a study's digest, got {digest!r}")
    return listed


class _Key(NamedTuple):
    """Where a limit stands in the file, and how it is read."""

    section: str
    parser: Parser


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """What a study is checked against besides the policy."""

    party: str  # this party's name in the study
    identity: PublicIdentity  # our keys, as studies have to pin them
    # In a sum that our rows are in, by the dry run; None without sums.
    fewest_owners: int | None
    rows: int  # how many rows our source has
    # The date of our data, where it is known; of several tables, of the oldest.
    data_as_of: dt.date | None
    cost: Spending  # what the study's script charges our rows, in all
    spent_in_total: Totals  # what the ledger has of other studies
    # Fingerprint of the authority that certified the curator. Verified by the caller.
    curator: str | None
    # The date of the newest of several tables, where it is another.
    data_newest: dt.date | None = None
    # By which it is told whether the study expired; None to leave that open.
    today: dt.date | None = None
    note: str = ""  # what only we may know about our rows
    # What it has of other studies in this calendar year.
    spent_in_year: Totals = field(default_factory=Totals)
    source_of_people: bool = False  # whether our source says whose row a row is


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """An owner's limits; the defaults are for keys that the file leaves out.

    No budget is unlimited, so two keys have no default.
    """

    epsilon_per_study: Annotated[Fraction, _Key("budget", parse_epsilon)]
    epsilon_in_total: Annotated[Fraction, _Key("budget", parse_epsilon)]
    epsilon_per_year: Annotated[Fraction | None, _Key("budget", parse_epsilon)] = None
    max_delta: Annotated[Fraction, _Key("budget", parse_delta)] = Fraction(0)
    # Beginnings of digests, in hexadecimal.
    forgotten: Annotated[tuple[str, ...], _Key("budget", _digests)] = ()
    min_parties: Annotated[int, _Key("study", whole(least=1))] = 2
    min_colluders: Annotated[int, _Key("study", whole(least=0))] = 1
    min_key_bits: Annotated[int, _Key("study", one_of(KEY_BITS))] = 2048
    protects: Annotated[str | None, _Key("study", one_of(_PROTECTS))] = None
    rows_per_person: Annotated[int | None, _Key("study", whole(least=1))] = None
    owners_per_person: Annotated[int | None, _Key("study", whole(least=1))] = None
    methods: Annotated[tuple[str, ...], _Key("study", texts(_METHODS))] = _METHODS
    profiles: Annotated[tuple[str, ...], _Key("study", texts(PROFILES))] = ("sound",)
    aggregations: Annotated[tuple[str, ...], _Key("study", texts(_AGGREGATIONS))] = (
        Aggregation.PAILLIER.value,
        Aggregation.MASKED.value,
    )
    signers: Annotated[tuple[str, ...], _Key("study", texts())] = ()
    curators: Annotated[tuple[str, ...], _Key("study", texts())] = ()
    min_rows: Annotated[int, _Key("data", whole(least=1))] = 1
    max_rows: Annotated[int | None, _Key("data", whole(least=1))] = None
    not_before: Annotated[dt.date | None, _Key("data", date)] = None
    not_after: Annotated[dt.date | None, _Key("data", date)] = None
    columns_allowed: Annotated[tuple[str, ...], _Key("data", texts())] = ()
    columns_never: Annotated[tuple[str, ...], _Key("data", texts())] = ()
    keep_for_audit: Annotated[int, _Key("data", whole(least=0))] = 0
    automatic: Annotated[bool, _Key("approval", yes_or_no)] = False
    rehearsals: Annotated[bool, _Key("approval", yes_or_no)] = False

    @property
    def caps(self) -> Caps:
        """What the ledger enforces at every charge, whatever was approved."""
        return Caps(
            per_study=self.epsilon_per_study,
            in_total=self.epsilon_in_total,
            delta=self.max_delta,
            in_year=self.epsilon_per_year,
        )

    def approves(self, *, rehearsal: bool) -> bool:
        """Say whether a study that nothing speaks against is approved without asking."""
        return self.automatic or (rehearsal and self.rehearsals)

    def writes_off(self, study: StudyId) -> bool:
        """Say whether the owner knows that our ledger lacks what this study cost."""
        return any(study.hex().startswith(digest) for digest in self.forgotten)

    @classmethod
    def load(cls, path: Path) -> Policy:
        """Read the policy in a file; errors name the file, the key and what would do."""
        return cls.from_toml(text_of(path), where=str(path))

    @classmethod
    def from_toml(cls, text: str, *, where: str = "policy") -> Policy:
        """Read the policy in a text; `where` names it in errors."""
        with located(where):
            policy = cls(**_read(parse_toml(text, parse_float=Decimal)))
            policy._check_automatic()
        return policy

    def _check_automatic(self) -> None:
        """Refuse automatic approval of studies from unknown proposers."""
        if self.automatic and not self.signers:
            raise InputError(
                "approval.automatic: needs study.signers. The proposer of a study names its "
                "parties, and can subtract the noise of parties that it invented. Name the signers "
                "whose studies may be approved without a person looking at who takes part"
            )

    def check_unit(self, *, source_of_people: bool) -> None:
        """Refuse automatic approval where the proposer would choose the unit of privacy."""
        stated = (self.protects, self.rows_per_person, self.owners_per_person)
        if self.automatic and source_of_people and stated == (None, None, None):
            raise InputError(
                "approval.automatic: the source names a person, and a study may protect single "
                "rows, which a person with k rows pays k times. Say in [study] of the policy what "
                'studies must protect: protects = "people", or protects = "rows" to accept both'
            )

    @property
    def demands_people(self) -> bool:
        """Whether a study that protects single rows is refused."""
        least = self.rows_per_person or self.owners_per_person
        return self.protects == "people" or (self.protects is None and least is not None)

    def reasons_against(self, study: Study, circumstances: Circumstances) -> list[str]:
        """List every reason not to take part; empty if there is none."""
        today = circumstances.today
        return [
            *([expiry(study)] if today is not None and study.expired(today) else []),
            *self._against_cost(study, circumstances),
            *self._against_study(study),
            *self._against_rows(study, circumstances.party),
            *self._against_sums(study, circumstances.fewest_owners),
            *_against_our_place(study, circumstances.party, circumstances.identity),
            *self._against_people(study.signer, circumstances.curator),
            *self._against_data(study, circumstances),
        ]

    def reasons_at_sight(
        self, study: Study, *, party: str, identity: PublicIdentity, curator: str | None
    ) -> list[str]:
        """List the reasons that are known before a row is read and before the dry run."""
        return [
            *self._against_study(study),
            *self._against_rows(study, party),
            *_against_our_place(study, party, identity),
            *self._against_people(study.signer, curator),
        ]

    def _against_cost(self, study: Study, circumstances: Circumstances) -> Iterator[str]:
        cost = circumstances.cost
        if not cost.within(self.epsilon_per_study, cost.delta):
            yield (
                f"it costs {cost.words()}, and one study may cost {self.epsilon_per_study} "
                "(epsilon_per_study)"
            )
        added = totals_of(study, cost)
        at = f" at delta {shown(self.max_delta):g}" if self.max_delta else ""
        for spent, when, cap, key in (
            (circumstances.spent_in_total, "already, and all studies together",
             self.epsilon_in_total, f"{at} (epsilon_in_total, max_delta)"),
            (circumstances.spent_in_year, "this year, and a year", self.epsilon_per_year,
             " (epsilon_per_year)"),
        ):  # fmt: skip
            for unit, paid, more in spent.passing(added, cap=cap, delta=self.max_delta):
                yield (
                    f"it costs a {unit} {more.words()}, {paid.words()} is spent {when} may cost "
                    f"{cap}{key}"
                )

    def _against_study(self, study: Study) -> Iterator[str]:
        parties = len(study.members)
        if study.seeded:
            yield "its random numbers come from a seed, so it is not private: a simulation (seeded)"
        if study.delta > self.max_delta:
            most = f"at most {shown(self.max_delta):g} is" if self.max_delta else "none is"
            yield f"it has a delta of {shown(study.delta):g}, and {most} allowed (max_delta)"
        if parties < self.min_parties:
            yield (
                f"it has {many(parties, 'party')}, at least {self.min_parties} are needed "
                "(min_parties)"
            )
        if study.profile == "sound" and study.colluders < min(self.min_colluders, parties - 1):
            yield (
                f"its noise withstands {study.colluders} of the other parties, at least "
                f"{self.min_colluders} are needed (min_colluders)"
            )
        encrypted = study.aggregation is Aggregation.PAILLIER
        if encrypted and study.key_bits < self.min_key_bits:
            yield (
                f"its key has {study.key_bits} bits, at least {self.min_key_bits} are needed "
                "(min_key_bits)"
            )
        for key, value, allowed in (
            ("methods", study.method, self.methods),
            ("profiles", study.profile, self.profiles),
            ("aggregations", study.aggregation.value, self.aggregations),
        ):
            if value not in allowed:
                yield f"{value!r} is not among the {key} allowed here: {', '.join(allowed)}"
        yield from self._against_unit(study)
        yield from self._against_columns(study)

    def _against_unit(self, study: Study) -> Iterator[str]:
        """Compare whom the study protects with whom the owner wants protected."""
        if not study.person_rows:
            if self.demands_people:
                yield "it protects single rows, and people must be protected (protects)"
            return
        owners = min(self.owners_per_person or 1, len(study.members))
        whole = study.schema.events is not None  # a person with everything that she has
        if not whole and study.rows_per_person < (self.rows_per_person or 1):
            yield (
                f"it counts at most {many(study.rows_per_person, 'row')} of a person, at least "
                f"{self.rows_per_person} are needed (rows_per_person)"
            )
        if study.owners_per_person < owners:
            yield (
                f"it protects people with rows at {many(study.owners_per_person, 'owner')}, at "
                f"least {owners} are needed (owners_per_person)"
            )

    def _against_rows(self, study: Study, party: str) -> Iterator[str]:
        """Compare the rows that the study states for us, before any is read."""
        rows, most = study.rows_of.get(party), self.max_rows
        if most is None and study.rows_per_person:
            most = _MOST_ROWS_OF_PEOPLE
        if rows is None:
            return
        stated = f"it says that we have {many(rows, study.schema.row)}"
        if rows < self.min_rows:
            yield f"{stated}, at least {self.min_rows:,} are needed (min_rows)"
        if most is not None and rows > most:
            yield f"{stated}, at most {most:,} may take part (max_rows)"

    def _against_columns(self, study: Study) -> Iterator[str]:
        """Compare columns by the study's names, whatever case they are written in."""
        allowed, never = (
            {name.casefold() for name in names}
            for names in (self.columns_allowed, self.columns_never)
        )
        for name in dict.fromkeys(study.schema.every_name):
            if name.casefold() in never:
                yield f"it is about the column {name!r}, which no study may name (columns_never)"
            elif allowed and name.casefold() not in allowed:
                yield f"it is about the column {name!r}, which is not allowed (columns_allowed)"

    def _against_sums(self, study: Study, fewest: int | None) -> Iterator[str]:
        if fewest is not None and fewest < min(self.min_parties, len(study.members)):
            yield (
                f"it adds up our rows with those of {many(fewest - 1, 'other party')} in a sum, at "
                f"least {many(self.min_parties, 'party')} are needed in each (min_parties)"
            )

    def least_known(self, authorities: Sequence[str]) -> str:
        """Return an authority that `curators` leaves out, if there is one, else the first.

        TLS takes curators of all of them. Which of them certified this curator is not known here,
        so the policy must allow them all.
        """
        known = set(map(_plain, self.curators))
        return next(
            (authority for authority in authorities if _plain(authority) not in known),
            authorities[0],
        )

    def _against_people(self, signer: str | None, curator: str | None) -> Iterator[str]:
        for key, who, fingerprint, allowed in (
            ("signers", "who signed the study", signer, self.signers),
            ("curators", "the curator", curator, self.curators),
        ):
            if allowed and (fingerprint is None or _plain(fingerprint) not in map(_plain, allowed)):
                yield f"{who} ({fingerprint or 'unknown'}) is not among the {key} allowed here"

    def _against_data(self, study: Study, circumstances: Circumstances) -> Iterator[str]:
        if study.rehearsal:  # our data has no part in it
            return
        declared = study.rows_of.get(circumstances.party)
        rows, as_of = circumstances.rows, circumstances.data_as_of
        if declared is not None and declared != rows:
            yield f"it says that we have {many(declared, study.schema.row)}, and we have {rows:,}"
        if as_of is None and (self.not_before is not None or self.not_after is not None):
            yield "the date of our data is not known; give as_of in the source's settings"
        if as_of is not None and self.not_before is not None and as_of < self.not_before:
            yield f"our data is of {as_of}, older than {self.not_before} (not_before)"
        newest = circumstances.data_newest or as_of
        if newest is not None and self.not_after is not None and newest > self.not_after:
            yield f"our data is of {newest}, newer than {self.not_after} (not_after)"


def totals_of(study: Study, cost: Spending) -> Totals:
    """Return the cost of a study, by whom it protects."""
    return Totals.of(
        cost, rows_per_person=study.person_rows, owners_per_person=study.owners_per_person
    )


def expiry(study: Study) -> str:
    """Say why a study that expired is refused; it follows from the study alone."""
    return f"it expired on {study.expires}. Ask for a new study"


def _against_our_place(study: Study, party: str, identity: PublicIdentity) -> Iterator[str]:
    pinned = study.roster.get(party)
    if pinned is None:
        yield f"it has no party called {party!r}"
    elif pinned.encoded != identity.encoded:
        yield (
            f"it pins another identity for {party!r}: {pinned.fingerprint}, and ours is "
            f"{identity.fingerprint}. Send its proposer our identity.pub"
        )


def _plain(fingerprint: str) -> str:
    """Return a fingerprint without what people may type differently: groups and capitals."""
    return "".join(letter for letter in fingerprint.upper() if letter.isalnum())


def _read(document: Mapping[str, object]) -> dict[str, Any]:
    hints = get_type_hints(Policy, include_extras=True)
    sections: dict[str, dict[str, Parser]] = {}
    for name, hint in hints.items():
        section, parser = hint.__metadata__[0]
        sections.setdefault(section, {})[name] = parser
    for section in document:
        if section not in sections:
            raise InputError(f"unknown section {section!r}. Choose one of: {', '.join(sections)}")
    without_default = {key.name for key in fields(Policy) if key.default is MISSING}
    values: dict[str, Any] = {}
    for section, table in {"budget": {}, **document}.items():
        parsers = sections[section]
        required = [name for name in parsers if name in without_default]
        values |= read_table(table, parsers, inside=section, required=required)
    return values
