"""A release of one owner: its accountant tells, its statement says what it rests on."""

from fractions import Fraction

import pandas as pd
import pyarrow as pa
import pytest

from common.errors import InputError, PolicyError
from common.fitted.single_owner import (
    OWNER,
    TellingAccountant,
    as_arrow,
    as_schema,
    encode,
    statement_of,
)
from common.privacy.accountant import Charge
from common.privacy.randomness import OsRandomSource, SeededRandomSource
from common.schema import Schema

TEXT = '[[attribute]]\nname = "a"\nkind = "boolean"\n'
FRAME = pd.DataFrame({"a": [True, False, True]})


def charge(step, epsilon):
    return Charge(step=step, mechanism="m", costs={OWNER: Fraction(epsilon)})


def test_how_far_the_work_is_is_told_by_what_was_spent_before():
    told = []
    accountant = TellingAccountant(
        Fraction(2), lambda fraction, doing: told.append((fraction, doing))
    )
    accountant.charge(charge("network", "1/2"))
    accountant.charge(charge("tables", "3/2"))
    assert told == [(0.0, "network"), (0.25, "tables")]
    with pytest.raises(PolicyError):
        accountant.charge(charge("more", "1/100"))
    assert len(told) == 2, "what was refused is not told"


def test_a_statement_has_what_was_spent_and_a_seed_makes_it_not_private():
    accountant = TellingAccountant(Fraction(2))
    accountant.charge(charge("tables", "3/2"))
    for source, private in ((OsRandomSource(), True), (SeededRandomSource(1), False)):
        document = statement_of(Fraction(2), accountant, source)
        assert document["exact"]["epsilon_delivered"] == "3/2"
        assert document["private"] is private
    assert any("k rows by k times" in note for note in document["notes"])


def test_tables_of_pandas_and_arrow_have_the_same_codes_and_others_are_refused(tmp_path):
    (tmp_path / "schema.toml").write_text(TEXT)
    schema = as_schema(tmp_path / "schema.toml")
    assert schema == as_schema(Schema.from_toml(TEXT))
    for table in (FRAME, pa.Table.from_pandas(FRAME)):
        codes, _ = encode(table, schema)
        assert codes.columns[0].tolist() == [1, 0, 1]
        assert as_arrow(table).column_names == ["a"]
    with pytest.raises(InputError, match="not list"):
        encode([1, 2], schema)
