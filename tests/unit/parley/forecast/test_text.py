"""A forecast in words: rounded for people, exact for scripts, with its warnings."""

from dataclasses import replace
from fractions import Fraction

import pytest

from common.crypto.sums.plan import Aggregation
from parley.forecast.forecast import EpsilonForecast, Forecast, PartyForecast, PhaseForecast
from parley.forecast.text import _bytes, _seconds, as_json, as_lines
from tests.harness.run_script import random_tables, study_of

STUDY = study_of(random_tables((2, 3), [600, 400]), method="floor")
SUM = PhaseForecast(
    phase="margins",
    steps=2,
    tables=3,
    cells=1234,
    largest_table_cells=600,
    largest_table_attributes=2,
    choices=0,
    sensitivity=Fraction(4),
    scale=Fraction(8, 3),
    cost=Fraction(1, 3),
    noise_per_cell=2.5,
)
CHOICE = replace(
    SUM, phase="turns", tables=0, cells=0, largest_table_cells=None,
    largest_table_attributes=None, choices=2, sensitivity=None, scale=None, noise_per_cell=None,
    cost=Fraction(2, 3),
)  # fmt: skip


def line(epsilon, distance, floor=0.2):
    return EpsilonForecast(
        epsilon=Fraction(epsilon),
        cost=Fraction(epsilon),
        phases=(SUM, CHOICE),
        distances={"2-way": distance},
        floor={"2-way": floor},
        parties={"p0": PartyForecast(bytes_sent=2048, bytes_received=5 << 20, seconds=75.0)},
        seconds=0.04,
    )


FOUND = Forecast(
    study=STUDY,
    stand_in_rows=500,
    runs=3,
    lines=(line(1, 0.1), line("1/3", 0.21), line("1/9", 0.2101)),
    without_noise={"2-way": 0.01},
    floor_without_noise={"2-way": 0.15},
)


def words(found=FOUND):
    return "\n".join(as_lines(found, "made-up rows"))


def test_it_is_said_what_the_forecast_is_of_and_how_many_rows_each_stands_for():
    assert "A forecast on 500 made-up rows: of the stand-in, not of your data." in words()
    assert "Each stands for about 2.0 rows of the study." in words()
    assert "Each stands" not in words(replace(FOUND, stand_in_rows=1000))


def test_phases_have_their_noise_in_rows_and_choices_have_none():
    (margins,) = (each.split() for each in words().splitlines() if each.startswith("  margins"))
    assert margins[1:4] == ["2", "3", "1,234"]
    assert margins[-5:] == ["4", "2.667", "2.5", "0.25%", "0.3333"]
    (turns,) = (each.split() for each in words().splitlines() if each.startswith("  turns"))
    assert turns[1:] == ["2", "2", "choices", "0", "0.6667"]


def test_an_epsilon_that_is_worse_than_independent_columns_is_warned_of():
    """By more than what a few runs cannot tell apart."""
    assert "WORSE THAN INDEPENDENT COLUMNS at epsilon 0.111111:" in words()
    better = replace(FOUND, lines=FOUND.lines[:2])
    assert "WORSE" not in words(better)


def test_sums_in_the_clear_are_not_private():
    clear = replace(STUDY, aggregation=Aggregation.CLEAR)
    assert "NOT PRIVATE" in words(replace(FOUND, study=clear))
    assert "NOT PRIVATE" not in words()


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (_bytes(0), "0 B"), (_bytes(1023), "1023 B"), (_bytes(1024), "1.0 KiB"),
        (_bytes(3 << 30), "3.0 GiB"), (_bytes(5 << 40), "5,120.0 GiB"),
        (_seconds(0.04), "0.0 s"), (_seconds(59.9), "59.9 s"), (_seconds(60), "1.0 min"),
        (_seconds(5400), "1.5 h"),
    ],
)  # fmt: skip
def test_bytes_and_seconds_have_the_largest_unit_that_they_fill(shown, expected):
    assert shown == expected


def test_scripts_get_exact_fractions_and_nothing_rounded():
    told = as_json(FOUND, "made-up rows")
    assert told["study"] == STUDY.digest.hex()
    second = told["epsilons"][1]
    assert (second["epsilon_exact"], second["tvd_2"]) == ("1/3", 0.21)
    margins, turns = second["phases"]
    assert (margins["noise_scale"], margins["epsilon"]) == ("8/3", "1/3")
    assert margins["noise_per_cell_of_rows"] == 2.5 / 1000
    assert turns["noise_scale"] is None
    assert told["without_noise"] == {"tvd_2": 0.01}
