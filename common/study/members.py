"""The parties of a study as its text names them: [[party]] tables."""

from __future__ import annotations

from dataclasses import dataclass

from common.crypto.identities.identity import PublicIdentity
from common.errors import InputError, located
from common.schema.limits import MOST_NAME, MOST_ROWS, check_most, check_name


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A party as the study knows it: its name, its public row count, its pinned identity."""

    name: str
    rows: int
    identity: PublicIdentity

    def __post_init__(self) -> None:
        with located("party"):
            check_name(self.name, most=MOST_NAME)
        if type(self.rows) is not int or self.rows < 1:
            raise InputError(
                f"party {self.name!r}: rows must be a whole number of at least 1, "
                f"not {self.rows!r:.100}"
            )
        check_most(f"party {self.name!r}: rows", self.rows, most=MOST_ROWS)


def member_in(entry: object) -> Member:
    """Read a [[party]] of study.toml; InputError names it and what is wrong."""
    if not isinstance(entry, dict) or set(entry) != {"name", "rows", "identity"}:
        raise InputError(f"party: expected name, rows and identity, got {entry!r:.100}")
    if not isinstance(entry["name"], str):
        raise InputError(f"party: a name is a text, not {entry['name']!r}")
    with located(f"party {entry['name']!r}"):
        identity = PublicIdentity.from_text(entry["identity"])
    return Member(name=entry["name"], rows=entry["rows"], identity=identity)
