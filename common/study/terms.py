"""The terms of a study, written once: name, type, how a value is read, what it means.

The keys of study.toml, the parameters of `parley.simulate`, the options of the commands and the
page of the configuration are made from the classes below. A default is that of the field of
`Study`. A new term is one line here and one field there.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Annotated, Any, Required, TypedDict, get_args, get_origin, get_type_hints

from common.crypto.identities.identity import normal_fingerprint
from common.crypto.sums.plan import Aggregation, Noise
from common.privacy.budget import parse_delta, parse_epsilon, parse_fraction
from common.schema.toml import Parser, a_table, date, member_of, text, whole, yes_or_no
from common.study.analyses import as_tables
from common.study.criteria import read_criteria

Number = str | Fraction | int | float  # texts and fractions are taken as written
_COUNT = whole(least=0)


@dataclass(frozen=True, slots=True)
class Term:
    """What may be said about a study under one name."""

    read: Parser  # from a value of TOML or of Python
    meaning: str
    kind: Any = None  # the type of a value that a person writes
    key: str = ""  # what study.toml and commands call it, where that is another name


class Terms(TypedDict, total=False):
    """What a proposer chooses."""

    name: Annotated[str, Term(text, "What people call the study.")]
    method: Annotated[str, Term(text, "How the synthetic table is made; see `parley methods`.")]
    epsilon: Required[
        Annotated[Number, Term(parse_epsilon, "What each owner's rows may cost: 0.8 or 4/5.")]
    ]
    delta: Annotated[
        Number,
        Term(parse_delta, "The chance that epsilon may fail with, like 1e-9; 0 is pure epsilon."),
    ]
    profile: Annotated[
        str, Term(text, "sound: epsilon as printed. paper: its noise, true cost printed.")
    ]
    noise: Annotated[
        str | None, Term(member_of(Noise), "distributed or one-share. [default: by profile]")
    ]
    aggregation: Annotated[
        str, Term(member_of(Aggregation), "paillier, masked, or clear (NOT PRIVATE).")
    ]
    colluders: Annotated[
        int, Term(_COUNT, "Owners that may pool what they know, for distributed noise.")
    ]
    may_miss: Annotated[
        int,
        Term(_COUNT, "Owners that may go missing for good: the others finish. Masked sums only; "
             "its noise costs accuracy even if no owner is missing."),
    ]  # fmt: skip
    cohorts: Annotated[int, Term(_COUNT, "dp-subn: releases of the structure update.")]
    key_bits: Annotated[int, Term(_COUNT, "The size of the curator's Paillier key.")]
    encoding: Annotated[
        str, Term(text, "own: attributes keep their domains; binary: bits, as in the paper.")
    ]
    output_rows: Annotated[
        int, Term(_COUNT, "How many synthetic rows. [default: as many as real ones]", key="rows")
    ]
    rows_per_person: Annotated[
        int,
        Term(_COUNT, "Protect a person with up to so many rows at each owner; 0: protect a row."),
    ]
    owners_per_person: Annotated[int, Term(_COUNT, "The most owners that have rows of a person.")]
    settings: Annotated[
        Mapping[str, str | int],
        Term(a_table, "Of the method, as in its table of study.toml; `parley methods` lists them.",
             key="set"),
    ]  # fmt: skip
    criteria: Annotated[
        Sequence[Mapping[str, object]],
        Term(read_criteria, "What the model must be good for, in the keys of [[criterion]]: "
             'mean = "income", within = "3 %"; share = "age > 60", within = 0.01.',
             key="criterion"),
    ]  # fmt: skip
    criteria_epsilon: Annotated[
        Number | None,
        Term(parse_epsilon, "The part of epsilon that measuring the criteria costs, like 0.05."),
    ]
    analyses: Annotated[
        Sequence[str | Mapping[str, object]],
        Term(as_tables, "What the table is for, exactly; measured first. In the keys of "
             '[[analysis]]: mean = "income", by = ["sex"]; relation, share, regression, survival.',
             key="analysis"),
    ]  # fmt: skip
    others: Annotated[
        Number | None,
        Term(parse_fraction, "With analyses: which part of what single columns leave goes to all "
             "other pairs, 0 up to below 1. [default: by forecast]"),
    ]  # fmt: skip
    purpose: Annotated[str, Term(text, "What the table is for; owners read it first.")]
    recipient: Annotated[str, Term(text, "Who gets the table.")]
    contact: Annotated[str, Term(text, "Whom owners can ask.")]
    ethics: Annotated[str, Term(text, "The ethics vote, contract or law that it rests on.")]
    expires: Annotated[
        dt.date,
        Term(date, "The last day (UTC) to approve it: without all approvals it ends then, free."),
    ]


class DocumentTerms(Terms, total=False):
    """What a proposer's tools add."""

    prior: Annotated[
        str, Term(text, "The SHA-256 of the manifest of an earlier release to build on.")
    ]
    curator: Annotated[
        str,
        Term(lambda value: normal_fingerprint(text(value)),
             "The fingerprint of the identity that signs the release."),
    ]  # fmt: skip
    agreement: Annotated[
        str, Term(text, "hybrid: masks rest on X25519 and ML-KEM-768; else on X25519 alone.")
    ]
    method_version: Annotated[
        int, Term(_COUNT, "The version of the method that is agreed on; parley 0.2 wrote none.")
    ]
    seeded: Annotated[
        bool, Term(yes_or_no, "Whether random numbers come from a seed: NOT PRIVATE.")
    ]
    commitments: Annotated[
        bool, Term(yes_or_no, "Whether owners commit to their tables and to what they send.")
    ]
    rehearsal: Annotated[
        bool,
        Term(yes_or_no, "Whether owners answer about simulated rows, and are charged nothing."),
    ]


def _table_of(kind: type) -> Mapping[str, Term]:
    terms = {}
    for name, hint in get_type_hints(kind, include_extras=True).items():
        annotated = get_args(hint)[0] if get_origin(hint) is Required else hint
        written, term = get_args(annotated)
        terms[name] = Term(term.read, term.meaning, written, term.key or name)
    return MappingProxyType(terms)


TERMS = _table_of(Terms)
DOCUMENT_TERMS = _table_of(DocumentTerms)
_TABLES = ("settings", "criteria", "analyses")  # in study.toml, tables of their own
PARSERS: Mapping[str, Parser] = {
    name: term.read for name, term in DOCUMENT_TERMS.items() if name not in _TABLES
}
