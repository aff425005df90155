"""The domains of a table, as conditions and rules see them: what a schema is without its rules."""

from __future__ import annotations

from typing import Protocol

from common.schema.attribute import Attribute


class Domains(Protocol):
    """Attributes in order, and what follows from them."""

    @property
    def attributes(self) -> tuple[Attribute, ...]: ...

    @property
    def names(self) -> tuple[str, ...]: ...

    @property
    def sizes(self) -> tuple[int, ...]: ...

    def position(self, name: str) -> int:
        """Return the position of an attribute; InputError if no attribute has the name."""
