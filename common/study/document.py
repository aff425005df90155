"""The study: everything the parties and the curator agree on before any row is touched.

`study.toml` is the contract. An owner reads it, sees what it costs, and approves its digest; the
digest is in every message. Each side derives the plan, the sensitivities and the noise scales from
the study by itself, so nothing that matters can be asked for in any other way.

    name = "regional health 2026"
    method = "subn+"
    epsilon = "0.8"
    delta = "1e-9"         # 0, pure epsilon, if it is left out
    purpose = "Where to build the next dialysis ward"
    curator = "4K7Q-0TZM-V2WD-91HX-ENB5-RR3C-Y8GA-6JPS"   # who signs the release
    expires = 2027-06-30   # prior = "<SHA-256>" builds on an earlier release

    [[party]]
    name = "north"
    rows = 10000
    identity = "<base64 of the party's public identity>"

    [[attribute]]          # the schema, in the form of schema.toml
    name = "age"
    ...
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

from common.crypto.identities.identity import Identity, PublicIdentity, normal_fingerprint
from common.crypto.paillier.keys import KEY_BITS
from common.crypto.sums.plan import Aggregation, Noise
from common.errors import InputError, located
from common.privacy.budget import check_delta, shown
from common.privacy.promise import Promise
from common.schema import Schema
from common.schema.limits import (
    MOST_NAME,
    MOST_PARTIES,
    MOST_ROWS,
    check_digest,
    check_most,
    check_name,
    check_text,
)
from common.schema.toml import (
    parse_toml,
    read_table,
    refuse_unknown,
    text,
    text_of,
    toml,
    toml_lines,
)
from common.study.analyses import Analysis, check_columns, read_analyses
from common.study.criteria import Criterion, check_criteria, read_criteria
from common.study.ids import StudyId
from common.study.members import Member, member_in
from common.study.signatures import StudySignature
from common.study.terms import PARSERS
from common.wording import many

PROFILES = ("sound", "paper")
ENCODINGS = ("own", "binary")
DEFAULT_METHOD = "subn+"
TEXTS = ("purpose", "recipient", "contact", "ethics")
_CHOICES: Mapping[str, Collection[object]] = {
    "profile": PROFILES,
    "encoding": ENCODINGS,
    "agreement": ("", "hybrid"),
    "key_bits": KEY_BITS,
}
_VERSION = 1


@dataclass(frozen=True, kw_only=True)
class Study:
    """The agreed document.

    Its terms are those of `common.study.terms`, read and checked.
    """

    name: str
    schema: Schema  # the public domains
    members: tuple[Member, ...]  # the parties, in the order of the ring and of the cohorts
    epsilon: Fraction
    method: str = DEFAULT_METHOD
    profile: str = "sound"
    noise: Noise = Noise.DISTRIBUTED
    aggregation: Aggregation = Aggregation.PAILLIER
    colluders: int = 1
    may_miss: int = 0
    cohorts: int = 1
    key_bits: int = 2048
    encoding: str = "own"
    output_rows: int = 0
    # Of the method, as in the table of study.toml that has the method's name, sorted by key; the
    # method knows what they mean.
    settings: tuple[tuple[str, str | int], ...] = ()
    delta: Fraction = Fraction(0)
    purpose: str = ""
    recipient: str = ""
    contact: str = ""
    ethics: str = ""
    expires: dt.date | None = None
    rows_per_person: int = 0
    owners_per_person: int = 1
    criteria: tuple[Criterion, ...] = ()
    criteria_epsilon: Fraction = Fraction(0)
    analyses: tuple[Analysis, ...] = ()
    others: Fraction | None = None
    prior: str = ""
    curator: str = ""
    agreement: str = ""
    method_version: int = 0
    seeded: bool = False
    commitments: bool = False
    rehearsal: bool = False
    # The proposer's; not part of the digest. A wrong one is refused.
    signature: StudySignature | None = None

    def __post_init__(self) -> None:
        """Refuse contradictions, naming the key and what would do."""
        check_name(self.method, most=MOST_NAME)
        for key, known in _CHOICES.items():
            if (value := getattr(self, key)) not in known:
                raise InputError(f"{key}: {value!r} is not one of {', '.join(map(str, known))}")
        check_name(self.name, most=MOST_NAME)
        if self.epsilon <= 0:
            raise InputError(f"epsilon: must be above 0, not {self.epsilon}")
        self._check_delta()
        for key in TEXTS:
            check_text(key, getattr(self, key))
        names = self.parties
        if not names or len(set(names)) != len(names):
            raise InputError("party: a study has at least one party, and no name twice")
        check_most("party: parties of a study", len(names), most=MOST_PARTIES)
        check_most("party: rows of all parties together", self.rows, most=MOST_ROWS)
        if len({member.identity.encoded for member in self.members}) != len(names):
            raise InputError(
                "party: two parties have the same identity; one owner in two places of the study "
                "would know the noise of both"
            )
        if not 0 <= self.colluders < max(2, len(names)):
            raise InputError(
                f"colluders: {self.colluders} of {many(len(names), 'party')} cannot be "
                f"tolerated; at most {len(names) - 1}"
            )
        if not 1 <= self.cohorts <= len(names):
            raise InputError(f"cohorts: 1 to {len(names)} (the parties), not {self.cohorts}")
        if self.output_rows < 0:
            raise InputError(f"output_rows: at least 0, not {self.output_rows}")
        check_most("output_rows", self.output_rows, most=MOST_ROWS)
        check_digest("prior", self.prior)
        if self.curator and self.curator != normal_fingerprint(self.curator):
            raise InputError(f"curator: write it as {normal_fingerprint(self.curator)!r}")
        self._check_people()
        sound = self.epsilon * (self.profile == "sound")
        check_criteria(self.criteria, self.schema, part=self.criteria_epsilon, epsilon=sound)
        if self.others is not None and not (self.analyses and self.others < 1):
            raise InputError(
                f"others: {self.others} is the part of pairs that no analysis names. Write 0 up to "
                "below 1, and at least one [[analysis]]; or leave it out"
            )
        for number, analysis in enumerate(self.analyses, start=1):
            with located(f"analysis {number}"):
                check_columns(analysis, self.schema)
        self._check_noise()
        self._check_may_miss()
        if self.signature is not None:
            self.signature.require(self.digest)

    def expired(self, today: dt.date) -> bool:
        return self.expires is not None and today > self.expires

    def _check_people(self) -> None:
        if not 0 <= self.rows_per_person <= min(member.rows for member in self.members):
            raise InputError(
                f"rows_per_person: {self.rows_per_person} is not between 0 and the rows of the "
                "smallest party"
            )
        if not 1 <= self.owners_per_person <= len(self.members):
            raise InputError(
                f"owners_per_person: 1 to {len(self.members)} (the parties), not "
                f"{self.owners_per_person}"
            )
        if self.owners_per_person > 1 and not self.rows_per_person:
            raise InputError("owners_per_person: say rows_per_person, too: it is about people")
        if self.person_rows and self.profile == "paper":
            key = "rows_per_person" if self.rows_per_person else "events"
            raise InputError(
                f"{key}: the paper's noise is for single rows. Leave it out, or use "
                'profile = "sound"'
            )

    def _check_delta(self) -> None:
        with located("delta"):
            check_delta(self.delta)
        if self.delta and self.delta * self.rows > 1:
            raise InputError(
                f"delta: {shown(self.delta):g} is above 1 / {self.rows}, the rows of the study: a "
                "promise that may fail for one row of every table protects no one. Choose about "
                "1e-9"
            )
        if self.delta and self.profile == "paper":
            raise InputError(
                "delta: the paper's noise promises pure epsilon. Leave delta out, or use "
                'profile = "sound"'
            )

    def _check_noise(self) -> None:
        if self.noise is Noise.NONE:
            raise InputError("noise: a study without noise is not private; it is not offered")
        if self.noise is not Noise.ONE_SHARE:
            return
        if self.profile == "sound":
            raise InputError(
                "noise: one share of noise can be subtracted by the party that drew it, so it does "
                'not protect from the other parties; use noise = "distributed", or '
                'profile = "paper", whose statement says so'
            )
        if self.aggregation is Aggregation.MASKED:
            raise InputError(
                "noise: masked aggregation cannot hide whose share is used; "
                'use noise = "distributed"'
            )

    def _check_may_miss(self) -> None:
        if self.agreement and not self.can_agree:
            raise InputError("agreement: 'hybrid' needs masks")
        if self.may_miss == 0:
            return
        least = self.colluders + 2 * self.may_miss + 1
        if self.may_miss < 0:
            raise InputError(f"may_miss: at least 0, not {self.may_miss}")
        if self.aggregation is not Aggregation.MASKED:
            raise InputError(
                f"may_miss: aggregation {self.aggregation.value!r} needs every party to the end; "
                'use aggregation = "masked", or may_miss = 0'
            )
        if self.profile != "sound" or self.cohorts > 1:
            raise InputError(
                'may_miss: only profile = "sound" with cohorts = 1 can do without a party'
            )
        if len(self.members) < least:
            raise InputError(
                f"may_miss: {self.may_miss} of {many(len(self.members), 'party')} cannot be done "
                f"without while {self.colluders} may collude: at least {least} parties are needed "
                "(colluders + 2 may_miss + 1)"
            )

    @property
    def can_agree(self) -> bool:
        return self.aggregation is not Aggregation.CLEAR and self.noise is not Noise.ONE_SHARE

    def signed_by(self, identity: Identity) -> Study:
        return replace(self, signature=StudySignature.make(self.digest, identity))

    @property
    def signer(self) -> str | None:
        """The signer's fingerprint; None without a signature."""
        return None if self.signature is None else self.signature.identity.fingerprint

    @cached_property
    def parties(self) -> tuple[str, ...]:
        return tuple(member.name for member in self.members)

    @cached_property
    def rows_of(self) -> Mapping[str, int]:
        return {member.name: member.rows for member in self.members}

    @cached_property
    def roster(self) -> Mapping[str, PublicIdentity]:
        return {member.name: member.identity for member in self.members}

    @cached_property
    def pinned(self) -> frozenset[str]:
        """The fingerprints that the digest stands for: of every party, and of the curator."""
        parties = {identity.fingerprint for identity in self.roster.values()}
        return frozenset(parties | ({self.curator} - {""}))

    def member(self, name: str) -> Member:
        """Return the party of this name; InputError if there is none."""
        for member in self.members:
            if member.name == name:
                return member
        raise InputError(
            f"study {self.name!r}: it has no party {name!r}. Its parties: {', '.join(self.parties)}"
        )

    @property
    def rows(self) -> int:
        return sum(member.rows for member in self.members)

    @property
    def promise(self) -> Promise:
        """The promise to each party's rows, or people, and the noise that it buys."""
        events = self.schema.events
        return Promise(
            self.epsilon,
            self.delta,
            self.rows_per_person,
            self.owners_per_person,
            events="" if events is None else events.name,
        )

    @property
    def person_rows(self) -> int:
        """Of how many rows a person is that the promise is to; 0 if it is to single rows.

        A person of a linked schema is one row, with all of her events.
        """
        return self.rows_per_person if self.schema.events is None else 1

    @property
    def criteria_cost(self) -> Fraction:
        """The cost of the criteria, in the promise's currency: what their epsilon would buy."""
        part = self.criteria_epsilon
        return Promise(part, self.delta).budget if part else part

    @property
    def method_promise(self) -> Promise:
        """The promise with what the criteria leave of its budget: all that the method may spend."""
        left = self.promise.budget - self.criteria_cost
        return replace(self.promise, left=left) if self.criteria else self.promise

    @property
    def effective_colluders(self) -> int:
        """A single party has no other to collude with."""
        return min(self.colluders, len(self.members) - 1)

    def noise_shares(self, parties: int) -> Fraction:
        """Return how many times the variance of its law a sum of so many parties carries."""
        if self.noise is not Noise.DISTRIBUTED:
            return Fraction(1)
        if self.may_miss:  # the same shares are drawn, whichever party is missing in the end
            return Fraction(parties, len(self.members) - self.effective_colluders - self.may_miss)
        return Fraction(parties, parties - min(self.colluders, parties - 1))

    @cached_property
    def canonical(self) -> bytes:
        """The one byte string that stands for this study."""
        document = {
            **{key: toml(getattr(self, key)) for key in PARSERS if key not in _APART},
            "parley_study": _VERSION,
            "schema": self.schema.digest(),
            "members": [[m.name, m.rows, m.identity.text] for m in self.members],
            "settings": dict(self.settings),
            "criteria": [criterion.plain for criterion in self.criteria],
            "expires": "" if self.expires is None else self.expires.isoformat(),
            **{key: getattr(self, key) for key in _LATER if getattr(self, key)},
            **({"others": str(self.others)} if self.others is not None else {}),
            **({"analyses": [a.plain for a in self.analyses]} if self.analyses else {}),
        }
        return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()

    @cached_property
    def digest(self) -> StudyId:
        """SHA-256 of the canonical bytes; in every message."""
        return StudyId(hashlib.sha256(self.canonical).digest())

    def to_toml(self) -> str:
        left_out = [key for key in _LATER if not getattr(self, key)]
        left_out += [] if self.criteria else ["criteria_epsilon"]
        values = {key: getattr(self, key) for key in PARSERS if key not in left_out}
        if not self.rows_per_person:
            del values["rows_per_person"], values["owners_per_person"]
        lines = toml_lines({key: it for key, it in values.items() if it is not None and it != ""})
        if self.settings:  # a table: every key of the study itself comes before it
            lines += ["", *toml_lines(dict(self.settings), header=f"[{toml(self.method)}]")]
        for member in self.members:
            entries = {"name": member.name, "rows": member.rows}
            lines += ["", *toml_lines(entries, header="[[party]]")]
            lines += [f'identity = "{member.identity.text}"  # {member.identity.fingerprint}']
        lines += [line for criterion in self.criteria for line in criterion.to_toml()]
        lines += [line for analysis in self.analyses for line in analysis.to_toml()]
        schema = replace(self.schema, ignore=())
        text = "\n".join(lines) + "\n\n" + schema.to_toml()
        return text if self.signature is None else f"{text}\n{self.signature.to_toml()}"

    @classmethod
    def load(cls, path: Path) -> Study:
        return cls.from_toml(text_of(path), where=str(path))

    @classmethod
    def from_toml(cls, text: str, *, where: str = "study") -> Study:
        """Read a study from a text; `where` names it in errors."""
        try:
            # Decimals keep the budget exact; the schema's numbers are floats, as in schema.toml.
            with located(where):
                return _of_document(parse_toml(text, parse_float=Decimal), parse_toml(text))
        except (ValueError, OverflowError):
            raise InputError(f"{where}: a number is out of every range") from None

    @classmethod
    def of(
        cls,
        terms: Mapping[str, object],
        *,
        schema: Schema,
        members: Sequence[Member],
        signature: StudySignature | None = None,
    ) -> Study:
        """Make the study of these terms, in plain values; InputError names the key.

        They have the names of `common.study.terms`. None stands for a term that is left out; noise
        that is left out is what the profile calls for.
        """
        stated = {key: value for key, value in terms.items() if value is not None}
        settings, criteria = stated.pop("settings", {}), stated.pop("criteria", [])
        analyses = stated.pop("analyses", [])
        values = read_table(stated, PARSERS, required=("name", "epsilon"))
        paper = values.get("profile") == "paper"
        values.setdefault("noise", Noise.ONE_SHARE if paper else Noise.DISTRIBUTED)
        where = f"[{values.get('method', DEFAULT_METHOD)}]"
        return cls(
            **values,
            schema=schema,
            members=tuple(members),
            settings=_settings(settings, where=where),
            criteria=read_criteria(criteria),
            analyses=read_analyses(analyses, schema),
            signature=signature,
        )


# Where they are not set, text and canonical bytes lack them: digests of parley 0.2 stay the same.
_LATER = (
    "curator", "agreement", "method_version", "seeded", "commitments", "rehearsal",
)  # fmt: skip
_APART = {"expires", "others", *_LATER}  # terms that the canonical bytes hold in their own way


def _of_document(document: Mapping[str, Any], floats: Mapping[str, Any]) -> Study:
    with located("method"):
        method = text(document.get("method", DEFAULT_METHOD))
    tables = ("party", "attribute", "rule", "events", "criterion", "analysis", "signature", method)
    refuse_unknown(document, [*PARSERS, *tables])
    for key in ("party", "attribute"):
        if key not in document:
            raise InputError(f"{key} is missing")
    if not isinstance(document["party"], list):
        raise InputError("party: write one [[party]] for each")
    check_most("party: parties of a study", len(document["party"]), most=MOST_PARTIES)
    terms = {key: value for key, value in document.items() if key not in tables}
    signature = document.get("signature")
    return Study.of(
        {
            **terms,
            "settings": document.get(method),
            "criteria": document.get("criterion"),
            "analyses": document.get("analysis"),
        },
        schema=Schema.from_document(
            {key: floats[key] for key in ("attribute", "rule", "events") if key in floats}
        ),
        members=[member_in(entry) for entry in document["party"]],
        signature=None if signature is None else StudySignature.from_table(signature),
    )


def _settings(table: object, *, where: str) -> tuple[tuple[str, str | int], ...]:
    """Return the settings of a method, texts and whole numbers, in the order of their names."""
    if not isinstance(table, Mapping):
        raise InputError(f"{where}: write the settings of a method as a table")
    for key, value in table.items():
        check_name(key, most=MOST_NAME)
        if type(value) is str:
            check_most(f"{where} {key}: characters", len(value), most=MOST_NAME)
        elif type(value) is not int:
            raise InputError(
                f"{where} {key}: expected a text or a whole number, got {value!r:.100}. "
                'Write fractions as texts, such as "0.5"'
            )
    return tuple(sorted(table.items()))
