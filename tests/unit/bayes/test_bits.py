"""Rows of bits become rows of attributes; patterns that stand for no value are drawn again."""

import numpy as np
import pytest

from common.bayes.bits import attributes_from_bits
from common.privacy.randomness import SeededRandomSource
from common.schema.codes import Codes
from common.schema.encodings import binarise

SIZES = (3, 5, 2)


def rows(*values):
    return Codes.from_columns(list(np.array(values).T), SIZES)


def bits(*patterns):
    return Codes.from_columns(list(np.array([list(map(int, p)) for p in patterns]).T), [2] * 6)


@pytest.mark.parametrize("gray", [False, True])
def test_rows_that_stand_for_one_are_kept_and_nothing_is_drawn(gray):
    sent = rows((0, 0, 0), (2, 4, 1), (1, 3, 1))

    def redraw(count):
        raise AssertionError(count)

    found = attributes_from_bits(
        binarise(sent, gray), SIZES, redraw=redraw, source=SeededRandomSource(1), gray=gray
    )
    assert [column.tolist() for column in found.columns] == [c.tolist() for c in sent.columns]


def test_only_as_many_rows_are_drawn_again_as_were_impossible():
    asked = []

    def redraw(count):
        asked.append(count)
        return bits(*["111111"] * (count - 1), "101001")  # one row more each time

    found = attributes_from_bits(
        bits("000000", "110000", "001111", "000011"),
        SIZES,
        redraw=redraw,
        source=SeededRandomSource(1),
    )
    assert asked == [2, 1]
    assert list(zip(*(c.tolist() for c in found.columns), strict=True)) == [
        (0, 0, 0), (0, 1, 1), (2, 4, 1), (2, 4, 1),
    ]  # fmt: skip


def test_after_fifty_redraws_only_the_impossible_values_are_replaced():
    asked = []

    def redraw(count):
        asked.append(count)
        return bits(*["011111"] * count)  # 1, then 7 of 0..4, then 1

    found = attributes_from_bits(
        redraw(3000), SIZES, redraw=redraw, source=SeededRandomSource("replaced")
    )
    assert asked == [3000] * 51
    assert set(found.columns[0].tolist()) == set(found.columns[2].tolist()) == {1}
    counted = np.bincount(found.columns[1], minlength=5)
    assert (abs(counted - 600) < 5 * np.sqrt(3000 * 0.2 * 0.8)).all()
