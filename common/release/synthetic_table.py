"""The synthetic table of a release: its columns, how it is written, and how it is read back.

Synthetic rows come back in the shape of the real table. Remembered are the names of its columns in
their order, and which columns were categoricals. Types are not remembered: pandas or Arrow infer
them from the cells, so types tell about cells. An empty cell makes 64-bit integers floats, one 0.5
makes a column of whole numbers one of fractions, one cell that is no date makes text of all dates.
Published with a release, that would be a fact about a row that no budget paid for. So the schema
decides the type of every column. The categories of a categorical are a list of values, often of
just those that occur: the values of the schema take their place.

A table is written block by block. A Parquet file has a row group per block, and says that its
columns are of the types that pandas would have written.

A table that is not trusted is read block by block, wherever the release is. Every row is encoded,
so a cell that is not of the schema is found wherever it is.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Self

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from common.errors import InputError
from common.release.contents import Contents
from common.schema import Codes, Schema
from common.schema.attribute import Attribute, Listed
from common.schema.binning import Binning
from common.schema.codes import concatenate
from common.schema.columns import as_text, is_text
from common.schema.rules import Columns, PossibleCells
from common.tables.csv_file import convert_options, parse_options

if TYPE_CHECKING:
    import pandas as pd


from collections.abc import Collection

from common.release.folder import TABLES, events_table
from common.schema.events import PERSON
from common.schema.linked import LinkedCodes, Positions

BLOCK_ROWS = 1 << 17  # rows of a block, and of a row group of a Parquet file
KEPT_ROWS = 1 << 20  # so many are held for the report, and writing in one piece ends here
_BY_SCHEMA = "by schema"
_CATEGORY = "category"
_ORDERED = "category, ordered"
KINDS = frozenset({_BY_SCHEMA, _CATEGORY, _ORDERED})
_MOST_DISTINCT = 1 << 12  # numbers that take more values than this are not worth a dictionary


@dataclass(frozen=True)
class TableColumns:
    """The names of the columns, in order, and which of them are categoricals."""

    kinds: Mapping[str, str]  # "category", "category, ordered" or "by schema", by column

    @classmethod
    def of(cls, table: pd.DataFrame | pa.Table, schema: Schema) -> TableColumns:
        """Return those of a table that the schema names; the others are the owner's own matter."""
        if isinstance(table, pa.Table):
            # Dictionaries are how a column was stored, not what it holds.
            kinds = dict.fromkeys(table.column_names, _BY_SCHEMA)
        else:
            kinds = {str(name): _kind(column) for name, column in table.items()}
        return cls({name: kind for name, kind in kinds.items() if name in schema.names})

    @classmethod
    def by_schema(cls, schema: Schema) -> TableColumns:
        """Return the columns of a table not seen here: the schema's, in its order."""
        return cls(dict.fromkeys(schema.names, _BY_SCHEMA))

    @classmethod
    def of_json(cls, document: Mapping[str, Any]) -> TableColumns:
        return cls({str(name): str(kind) for name, kind in document["columns"].items()})

    def shape(self, table: pd.DataFrame, schema: Schema) -> pd.DataFrame:
        """Return a decoded table in this order, with these categoricals."""
        names = [name for name in self.kinds if name in table.columns]
        return table[names].assign(**{name: self._shaped(table[name], schema) for name in names})

    def _shaped(self, column: pd.Series[Any], schema: Schema) -> pd.Series[Any]:
        import pandas as pd  # loaded late: a service writes tables without it

        kind = self.kinds[str(column.name)]
        if kind not in (_CATEGORY, _ORDERED):
            return column
        domain = schema.attributes[schema.position(str(column.name))].domain
        categories = None
        if isinstance(domain, Listed):  # and after them what else occurs: "(other)"
            others = (v for v in column.dropna().unique() if v not in domain.values)
            categories = [*domain.values, *others]
        return column.astype(pd.CategoricalDtype(categories, ordered=kind == _ORDERED))


def _kind(column: pd.Series[Any]) -> str:
    if column.dtype.name == "category":
        return _ORDERED if column.cat.ordered else _CATEGORY
    return _BY_SCHEMA


def new_file(path: Path | BinaryIO, schema: Schema, like: pd.DataFrame) -> CsvWriter | ParquetFile:
    if isinstance(path, Path) and path.suffix == ".parquet":
        return ParquetFile(path, schema, like)
    return CsvWriter(path, like)


def one_of_each(schema: Schema) -> Codes:
    """Return a few rows with every code of every attribute: they show the types of columns."""
    rows = np.arange(max(schema.sizes))
    return Codes.from_columns([rows % size for size in schema.sizes], schema.sizes)


class CsvWriter:
    """A CSV file with the columns of some rows that it is `like`, in their order."""

    def __init__(self, path: Path | BinaryIO, like: pd.DataFrame) -> None:
        self._names = [str(name) for name in like.columns]
        self._file = path.open("wb") if isinstance(path, Path) else path
        self._close = self._file.close if isinstance(path, Path) else self._file.flush
        like.iloc[:0].to_csv(self._file, index=False)

    def formatted(self, table: pa.Table) -> pa.Buffer:
        columns = [_as_written(table.column(name)) for name in self._names]
        lines = pa.BufferOutputStream()
        pyarrow.csv.write_csv(
            pa.table(columns, names=self._names),
            lines,
            pyarrow.csv.WriteOptions(include_header=False, quoting_style="needed"),
        )
        return lines.getvalue()

    def write(self, lines: pa.Buffer) -> None:
        self._file.write(lines)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()


def _as_written(column: pa.ChunkedArray) -> pa.ChunkedArray | pa.Array:
    """Return what the writer of CSV understands, and pandas would write."""
    if pa.types.is_dictionary(column.type):
        return column.cast(column.type.value_type)
    return as_text(column) if pa.types.is_boolean(column.type) else column


class ParquetFile:
    """A Parquet file; the arguments as for `CsvWriter`, with `like` for the types as well."""

    def __init__(self, path: Path, schema: Schema, like: pd.DataFrame) -> None:
        published = pa.Schema.from_pandas(like, preserve_index=False)
        self._published = pa.schema(
            [_writable(field) for field in published], metadata=published.metadata
        )
        self._stored = pa.schema([_stored(field, schema) for field in self._published])
        self._writer = pyarrow.parquet.ParquetWriter(
            path,
            self._stored,
            store_schema=False,
            write_statistics=False,  # every block covers every domain: they would tell nothing
            use_dictionary=[f.name for f in self._stored if _repeats(f.name, schema)],
        )

    def formatted(self, table: pa.Table) -> pa.Table:
        columns = [table.column(field.name).cast(field.type) for field in self._stored]
        return pa.table(columns, schema=self._stored)

    def write(self, block: pa.Table) -> None:
        self._writer.write_table(block, row_group_size=max(1, block.num_rows))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if error is None:
            published = base64.b64encode(self._published.serialize().to_pybytes())
            words = {"ARROW:schema": published, **(self._published.metadata or {})}
            self._writer.add_key_value_metadata(words)
        self._writer.close()


def _writable(field: pa.Field) -> pa.Field:
    """Make a categorical of numbers a column of numbers: dictionaries are of text only."""
    if pa.types.is_dictionary(field.type) and not is_text(field.type.value_type):
        return field.with_type(field.type.value_type)
    return field


def _stored(field: pa.Field, schema: Schema) -> pa.Field:
    """Store text as places in a dictionary; readers are told the published type.

    A column that cannot have an empty cell says so, which saves writing that it has none.
    """
    attribute = schema.attributes[schema.position(field.name)]
    textual = attribute.textual
    empty = attribute.missing or (attribute.other and not textual)
    words = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    kind = field.type
    if textual and is_text(words):
        kind = pa.dictionary(pa.from_numpy_dtype(attribute.code_type), pa.string())
    return pa.field(field.name, kind, nullable=empty)


def _repeats(name: str, schema: Schema) -> bool:
    domain = schema.attributes[schema.position(name)].domain
    if not isinstance(domain, Binning):
        return True
    return domain.whole and domain.high - domain.low < _MOST_DISTINCT


def as_in_the_table(schema: Schema, codes: Codes) -> Codes:
    """Return the codes that a reader of the table finds: `other` without text is empty."""
    columns = list(codes.columns)
    for place, attribute in enumerate(schema.attributes):
        if attribute.other and attribute.missing and not attribute.textual:
            column = codes.columns[place]
            missing = column.dtype.type(attribute.size - 1)
            columns[place] = np.where(column == attribute.other_code, missing, column)
    return replace(codes, columns=tuple(columns))


def count_rows(contents: Contents, name: str, schema: Schema) -> int:
    """Encode the table of a release and count its rows, in memory that does not depend on them."""
    return sum(codes.rows for codes in _encoded(contents, name, schema))


def read_codes(contents: Contents, name: str, schema: Schema) -> Codes:
    return concatenate(list(_encoded(contents, name, schema)))


def _encoded(contents: Contents, name: str, schema: Schema) -> Iterator[Codes]:
    """Encode the rows block by block; raise InputError if there is none."""
    empty = True
    try:
        for block in blocks_of(contents, name, schema):
            with contents.blaming(name):
                codes = encoded_block(block, schema, where=name)
            empty = False
            yield codes
    except (OSError, pa.ArrowException) as error:
        raise contents.error(name, why=f"not a table that can be read: {error}") from None
    if empty:
        raise contents.error(name, why="the table has no rows")


def encoded_block(block: pa.Table, schema: Schema, *, where: str) -> Codes:
    """Encode a block; InputError if a cell is not of the schema, or a row breaks a rule."""
    codes = schema.without_rules().encode(block, where=where)
    check_rules(schema.possible.rules, schema.attributes, codes.columns)
    return codes


def check_rules(
    rules: Iterable[PossibleCells], attributes: Iterable[Attribute], columns: Columns
) -> None:
    """Refuse a row that breaks a rule; where `other` is an empty cell, a rule cannot be checked."""
    unclear = {
        a
        for a, attribute in enumerate(attributes)
        if attribute.other and attribute.missing and not attribute.textual
    }
    for rule in rules:
        if unclear.isdisjoint(rule.attributes) and not rule.holds(columns).all():
            raise InputError(f"rows break a rule of the schema: {rule.rule}")


def blocks_of(
    contents: Contents, name: str, schema: Schema, *, more: tuple[str, ...] = ()
) -> Iterator[pa.Table]:
    """Read a table block by block; it has the columns of the schema and these, and no others."""
    names = (*schema.names, *more)
    with contents.open(name) as stream:
        if name.endswith(".parquet"):
            file = pyarrow.parquet.ParquetFile(stream)
            columns = file.schema_arrow.names
            batches = file.iter_batches(batch_size=BLOCK_ROWS)
        else:
            batches = pyarrow.csv.open_csv(
                stream,
                parse_options=parse_options(",", names),
                convert_options=convert_options((), dict.fromkeys(names, pa.string())),
            )
            columns = batches.schema.names
        if sorted(columns) != sorted(names):
            strange = sorted(set(columns) ^ set(names)) or ["a column that is there twice"]
            words = f"its columns are not those of the schema: {', '.join(strange)}"
            raise contents.error(name, why=words)
        yield from (pa.Table.from_batches([batch]) for batch in batches if batch.num_rows)


def table_names(listed: Collection[str], schema: Schema) -> tuple[str, str]:
    """Return the names of the tables of people and of events, of the files that a release has."""
    people = next((name for name in TABLES if name in listed), None)
    if people is None:
        raise InputError("the release has no synthetic table")
    return people, events_table(schema, people.rpartition(".")[2])


def read_linked(contents: Contents, schema: Schema) -> LinkedCodes:
    """Read both tables; InputError if events belong to no person, or are too many or unordered."""
    events = schema.events
    if events is None:
        raise InputError("schema: it has no [events]")
    of_people, of_events = table_names(contents.sizes(), schema)
    people, numbers = _read(contents, of_people, schema.people)
    if not np.array_equal(numbers, np.arange(1, people.rows + 1)) or not people.rows:
        raise contents.error(of_people, why=f"column {PERSON!r} does not count people from 1 on")
    codes, owners = _read(contents, of_events, schema.of_events)
    if len(owners) and (np.any(np.diff(owners) < 0) or owners[0] < 1 or owners[-1] > people.rows):
        raise contents.error(
            of_events, why=f"column {PERSON!r} is not that of {of_people}, in order"
        )
    counts = np.bincount(owners, minlength=people.rows + 1)[1:].astype(np.int64)
    if counts.max(initial=0) > events.most:
        raise contents.error(of_events, why=f"a person has more than {events.most} events")
    linked = LinkedCodes(people.columns, people.sizes, codes, counts, events.most)
    rules, attributes = schema.possible_events, schema.attributes + events.attributes
    with contents.blaming(of_events):
        check_rules(rules.rules, attributes, rules.joined(people, codes, linked.of_person))
    return linked


def _read(contents: Contents, name: str, schema: Schema) -> tuple[Codes, Positions]:
    parts, persons = [], [np.zeros(0, dtype=np.int64)]
    try:
        for block in blocks_of(contents, name, schema, more=(PERSON,)):
            with contents.blaming(name):
                parts.append(encoded_block(block, schema, where=name))
            persons.append(block.column(PERSON).cast(pa.int64()).to_numpy())
    except (OSError, ValueError, pa.ArrowException) as error:
        raise contents.error(name, why=f"not a table that can be read: {error}") from None
    empty = Codes.from_columns([np.zeros(0, dtype=np.int64)] * len(schema.sizes), schema.sizes)
    return concatenate([empty, *parts]), np.concatenate(persons)
