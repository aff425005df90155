"""People and their events as one source: joined once, held as codes, a block of people at a time.

Both tables are read once, in any order. People become blocks, as they are read; an event is put to
the block of its person, and of a person at most `most` events are kept. So what is held grows with
the people, never with how many events there are: some bytes a person to find her by, and codes with
the places of numbers in bins. Codes beyond `held_bytes` are in files that have no name and end with
the process.

Nothing of this leaves but codes to the counting kernels. What became of the events is told to the
owner, in the snapshot's note.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator, Sequence
from tempfile import SpooledTemporaryFile

import numpy as np
from numpy.typing import NDArray

from common.errors import InputError
from common.marginals import count
from common.schema import Codes, Schema
from common.schema.attribute import spans_of
from common.schema.codes import NO_GROUPS, Groups, code_dtype
from common.schema.events import Events
from common.schema.linked import ORDER_KEY, LinkedCodes, first_events, possible_histories
from party.sources.fingerprint import LinkedDigest
from party.sources.keyed import NO_ONE, NO_ORDER, Hashes, KeyedRows, KeyedTable
from party.sources.source import HELD_BYTES, Snapshot, Source

_SPARE_EVENTS = 1 << 20  # of a block, before its events are cut to those that count


class LinkedSource(Source):
    """A `Source` of people with their events; opening it reads both tables once."""

    def __init__(
        self,
        people: KeyedTable,
        events: KeyedTable,
        schema: Schema,
        *,
        held_bytes: int = HELD_BYTES,
        spare: int = _SPARE_EVENTS,
    ) -> None:
        self._tables, self._schema, self._spare = (people, events), schema, spare
        marks = [table.mark() for table in self._tables]
        joined = people.attempt(lambda: events.attempt(lambda: self._read(_Spools(held_bytes))))
        for table, mark in zip(self._tables, marks, strict=True):
            if table.mark() != mark:
                raise InputError(
                    f"{table.where}: the table was written to while it was being read. Try again "
                    "when that is done"
                )
        self._blocks = joined.blocks
        self._snapshot = self._taken(joined)

    def chunks(self) -> Iterator[Codes]:
        for block in self._blocks:
            yield block.codes()

    def count(
        self, sets: Sequence[Sequence[int]], groups: Groups = NO_GROUPS
    ) -> list[NDArray[np.int64]]:
        """Count people, by their own attributes."""
        parts = [count(codes, sets, groups=groups) for codes in self.chunks()]
        return [
            np.sum(np.stack(tables), axis=0, dtype=np.int64) for tables in zip(*parts, strict=True)
        ]

    def _read(self, spools: _Spools) -> _Joined:
        people, events = self._tables
        joined = _Joined(self._schema, spools, self._spare)
        for rows in people.rows():
            joined.add_people(rows)
        joined.find(where=people.where)
        for rows in events.rows():
            joined.add_events(rows)
        joined.end()
        return joined

    def _taken(self, joined: _Joined) -> Snapshot:
        digest = LinkedDigest(joined.blocks[0].codes())
        without = 0
        for codes in map(_Block.codes, joined.blocks):
            digest.add(codes)
            without += int((codes.numbers == 0).sum())
        dates = sorted({table.as_of for table in self._tables if table.as_of is not None})
        known = all(table.as_of is not None for table in self._tables)
        return Snapshot(
            rows=digest.rows,
            digest=digest.hexdigest(),
            as_of=dates[0] if known else None,
            newest=dates[-1] if known and len(dates) > 1 else None,
            note=joined.note(without),
        )


def require_one_row_each(people: Iterable[Hashes], *, where: str) -> Hashes:
    """Return all people; InputError if two rows have one identifier.

    Whose the events would be could not be told then. Rows without an identifier are people without
    events, so no empty cell stops a node.
    """
    every = np.concatenate([np.zeros(0, dtype=np.uint64), *people])
    named = every[every != NO_ONE]
    if len(np.unique(named)) < len(named):
        raise InputError(
            f"{where}: source.person: a cell is the same in two rows. A row is a person here: give "
            "every person one row"
        )
    return every


class _Spools:
    """Keeps bytes in memory, up to so many of all together; then in files without a name."""

    def __init__(self, held_bytes: int) -> None:
        self._left = held_bytes
        self._every: list[_Spool] = []

    def new(self) -> _Spool:
        spool = _Spool(self)
        self._every.append(spool)
        return spool

    def grew(self, by: int) -> None:
        self._left -= by
        for spool in self._every if self._left < 0 else ():
            spool.to_disk()


class _Spool:
    """Bytes that are added at the end and read at once."""

    def __init__(self, among: _Spools) -> None:
        self._among = among
        self._file = SpooledTemporaryFile()  # noqa: SIM115  # open for as long as this is there
        weakref.finalize(self, self._file.close)

    def to_disk(self) -> None:
        self._file.rollover()

    def add(self, arrays: Iterable[NDArray[np.generic]]) -> None:
        before = self._file.tell()
        for array in arrays:
            self._file.write(array.tobytes())
        self._among.grew(self._file.tell() - before)

    def read(self) -> bytes:
        self._file.seek(0)
        return self._file.read()

    def clear(self) -> None:
        self._among.grew(-self._file.seek(0, 2))
        self._file.seek(0)
        self._file.truncate()


class _Columns:
    """The columns of a table as they are held: codes, then the places of numbers in bins."""

    def __init__(self, schema: Schema) -> None:
        self._sizes = schema.sizes
        self._binned = tuple(
            a for a, attribute in enumerate(schema.attributes) if spans_of(attribute).any()
        )
        places = (np.dtype(np.uint8),) * len(self._binned)
        self.types = (*(np.dtype(code_dtype(size)) for size in schema.sizes), *places)

    def arrays(self, codes: Codes) -> tuple[NDArray[np.unsignedinteger], ...]:
        placed = codes.placed.columns
        return (*codes.columns, *(placed[codes.width + a] for a in self._binned))

    def codes(self, content: bytes) -> Codes:
        """Return a table whose columns were written one after the other."""
        rows = len(content) // sum(dtype.itemsize for dtype in self.types)
        ends = np.cumsum([0, *(rows * dtype.itemsize for dtype in self.types)])
        columns = [
            np.frombuffer(content, dtype=dtype, count=rows, offset=int(start))
            for dtype, start in zip(self.types, ends[:-1], strict=True)
        ]
        width = len(self._sizes)
        places = dict(zip(self._binned, columns[width:], strict=True))
        return Codes(
            tuple(columns[:width]), self._sizes, places=tuple(map(places.get, range(width)))
        )


class _Block:
    """Some people, and their events: as they are read, or cut to those that count."""

    def __init__(self, people: Codes, schema: Schema, declared: Events, spools: _Spools) -> None:
        self.rows = people.rows
        self.waiting = 0  # events that are not cut yet
        self._schema, self._most = schema, declared.most
        self._of_people, self._of_events = _Columns(schema.people), _Columns(schema.of_events)
        self._row = np.dtype(
            [
                ("person", "<u4"),
                ("order", ORDER_KEY if declared.order else NO_ORDER),
                ("tie", "<u8"),
                *((f"c{place}", dtype) for place, dtype in enumerate(self._of_events.types)),
            ]
        )
        self._people, self._events = spools.new(), spools.new()
        self._people.add(self._of_people.arrays(people))
        self._numbers = np.zeros(people.rows, dtype=np.uint8)

    def add(self, persons: NDArray[np.integer], rows: KeyedRows, *, spare: int) -> None:
        """Take in events of people at these places of the block."""
        events = np.empty(len(persons), dtype=self._row)
        events["person"], events["order"], events["tie"] = persons, rows.order, rows.ties
        for place, column in enumerate(self._of_events.arrays(rows.codes)):
            events[f"c{place}"] = column
        self._events.add([events])
        self.waiting += len(persons)
        if self.waiting > spare + self._most * self.rows:
            counting = self._cut()
            self._events.add([counting])
            self.waiting = len(counting)

    def _cut(self) -> NDArray[np.void]:
        """Return the events that count, in order; the spool is empty then."""
        events = np.frombuffer(self._events.read(), dtype=self._row)
        self._events.clear()
        first, numbers = first_events(
            events["person"], events["order"], events["tie"], people=self.rows, most=self._most
        )
        self._numbers = numbers.astype(np.uint8)
        return events[first]

    def end(self) -> None:
        """Keep of the events that count their codes alone, as rules allow them."""
        events = self._cut()
        self._events.add([events[f"c{place}"] for place in range(len(self._of_events.types))])
        if self._schema.possible_events.rules:
            possible = possible_histories(self._schema, self.codes())
            self._events.clear()
            self._events.add(self._of_events.arrays(possible.events))

    def codes(self) -> LinkedCodes:
        people = self._of_people.codes(self._people.read())
        events = self._of_events.codes(self._events.read())
        return LinkedCodes(
            people.columns,
            people.sizes,
            events,
            self._numbers.astype(np.int64),
            self._most,
            places=people.places,
        )


class _Joined:
    """What is read of two tables, so far."""

    def __init__(self, schema: Schema, spools: _Spools, spare: int) -> None:
        if schema.events is None:
            raise InputError("schema: it has no [events]")
        self._declared, self._schema = schema.events, schema
        self._spools, self._spare = spools, spare
        self._hashes: list[Hashes] = []
        self.blocks: list[_Block] = []
        self.events = self.unknown = 0

    def add_people(self, rows: KeyedRows) -> None:
        self._hashes.append(rows.people)
        self.blocks.append(_Block(rows.codes, self._schema, self._declared, self._spools))

    def find(self, *, where: str) -> None:
        """Sort the people by their hashes, for events to find theirs."""
        every = require_one_row_each(self._hashes, where=where)
        if not len(every):
            raise InputError(f"{where}: the table has no rows")
        self._starts = np.cumsum([0, *(block.rows for block in self.blocks)])
        self._places = np.argsort(every)
        self._sorted, self._hashes = every[self._places], []

    def add_events(self, rows: KeyedRows) -> None:
        at = np.minimum(np.searchsorted(self._sorted, rows.people), len(self._sorted) - 1)
        known = np.flatnonzero((self._sorted[at] == rows.people) & (rows.people != NO_ONE))
        self.events += len(at)
        self.unknown += len(at) - len(known)
        places = self._places[at[known]]
        order = np.argsort(places, kind="stable")
        ends = np.searchsorted(places[order], self._starts)
        for number, block in enumerate(self.blocks):
            in_block = order[ends[number] : ends[number + 1]]
            if len(in_block):
                events = known[in_block]
                part = KeyedRows(
                    rows.codes.take(events),
                    rows.people[events],
                    rows.order[events],
                    rows.ties[events],
                )
                block.add(places[in_block] - self._starts[number], part, spare=self._spare)

    def end(self) -> None:
        for block in self.blocks:
            block.end()

    def note(self, without: int) -> str:
        """Say what became of the events; for the owner only."""
        number = sum(block.codes().events.rows for block in self.blocks)
        name, beyond = self._declared.name, self.events - self.unknown - number
        return (
            f"{name}: {number:,} of {self.events:,} count; {self.unknown:,} are of people who are "
            f"not in our table, {beyond:,} beyond the first {self._declared.most} of a person. "
            f"People without {name}: {without:,}"
        )
