"""A study made from an earlier one: for another year, or without an owner that left.

A revision is another document with another digest, so every owner reviews and approves it anew; no
approval of the earlier study counts for it.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from fractions import Fraction

from common.errors import InputError
from common.exchanges.setup import with_commitments, with_hybrid_masks
from common.methods.registry import with_version
from common.schema import Schema
from common.schema.limits import MOST_NAME
from common.study.document import Study
from common.study.members import Member
from common.wording import many

_REHEARSAL_OF = "rehearsal of "
_YEAR = re.compile(r"(?<!\d)(20\d\d)(?!\d)")


def revised(
    earlier: Study,
    *,
    name: str,
    without: Collection[str] = (),
    rows: Mapping[str, int] | None = None,
    joining: Sequence[Member] = (),
    schema: Schema | None = None,
    epsilon: Fraction | None = None,
    prior: str = "",
    curator: str = "",
    today: dt.date,
    expires: dt.date | None = None,
) -> Study:
    """Return an unsigned study that differs from an earlier one in what is given.

    `prior` is the digest of the release to build on, `curator` the fingerprint to pin. A last day
    to approve that is over is left out.

    Raises:
        InputError: an owner is not in the earlier study, or what is left is no study.
    """
    if earlier.rehearsal:
        raise InputError(f"study {earlier.name!r}: it is a rehearsal. Name the study itself")
    rows = rows or {}
    for owner in [*without, *rows]:
        earlier.member(owner)  # an unknown one is refused
    staying = [
        replace(member, rows=rows.get(member.name, member.rows))
        for member in earlier.members
        if member.name not in without
    ]
    again = replace(
        earlier,
        name=name,
        members=(*staying, *joining),
        schema=schema or earlier.schema,
        epsilon=epsilon or earlier.epsilon,
        prior=prior,
        curator=curator,
        expires=expires or (None if earlier.expired(today) else earlier.expires),
        signature=None,
    )
    return with_version(with_commitments(with_hybrid_masks(again)))


def rehearsed(study: Study, *, name: str = "") -> Study:
    """Return the unsigned rehearsal of a study: all of it, on simulated rows."""
    named = name or f"{_REHEARSAL_OF}{study.name}"[:MOST_NAME]
    return replace(study, name=named, rehearsal=True, signature=None)


def next_name(earlier: str, year: int) -> str:
    """Name next year's study: the year in the name grows by one, or this year is added."""
    match = _YEAR.search(earlier)
    if match is None:
        return f"{earlier} {year}"
    return f"{earlier[: match.start()]}{int(match[1]) + 1}{earlier[match.end() :]}"


def changes(earlier: Study, later: Study) -> list[str]:
    """List what is different, a line each."""
    plain = [
        f"{field.name}: {_shown(before)} -> {_shown(after)}"
        for field in fields(Study)
        if field.name not in ("members", "schema", "signature")
        and (before := getattr(earlier, field.name)) != (after := getattr(later, field.name))
    ]
    return [*plain, *_members(earlier, later), *_attributes(earlier.schema, later.schema)]


def _shown(value: object) -> str:
    return str(getattr(value, "value", value))


def _members(earlier: Study, later: Study) -> Iterator[str]:
    before = {member.name: member for member in earlier.members}
    after = {member.name: member for member in later.members}
    for name in before.keys() - after.keys():
        yield f"party {name}: takes no part any more"
    for name, member in after.items():
        old = before.get(name)
        if old is None:
            yield f"party {name}: new, {many(member.rows, later.schema.row)}"
            continue
        if old.rows != member.rows:
            rows = many(member.rows, later.schema.row)
            yield f"party {name}: {old.rows:,} -> {rows}"
        if old.identity.encoded != member.identity.encoded:
            yield f"party {name}: another identity, {member.identity.fingerprint}"


def _attributes(earlier: Schema, later: Schema) -> Iterator[str]:
    before, after = _named(earlier), _named(later)
    yield from (f"column {name}: removed" for name in before if name not in after)
    yield from (f"column {name}: new" for name in after if name not in before)
    yield from (
        f"column {name}: other values or bins"
        for name, attribute in after.items()
        if name in before and before[name] != attribute
    )
    if list(before) != list(after) and before.keys() == after.keys():
        yield "columns: in another order"


def _named(schema: Schema) -> dict[str, object]:
    """Return all attributes by name, and what is said of events."""
    named: dict[str, object] = {attribute.name: attribute for attribute in schema.attributes}
    if (events := schema.events) is not None:
        named |= {f"{events.name}: {attribute.name}": attribute for attribute in events.attributes}
        named |= {f"{events.name}: {key}": value for key, value in events.entries.items()}
    return named
