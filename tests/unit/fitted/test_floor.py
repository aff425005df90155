"""The report warns where independent columns are expected to be closer, and only there."""

import numpy as np
import pandas as pd
import pytest

import parley
from common.fitted.study import floor_forecast
from common.report.writing import write_release
from common.schema import Schema

COINS = Schema.from_toml(
    "".join(f'[[attribute]]\nname = "a{i}"\nkind = "boolean"\n' for i in range(8))
)


def copies(rows):
    """Eight copies of one coin: as dependent as can be."""
    coin = np.random.default_rng(3).random(rows) < 0.5
    return pd.DataFrame({f"a{i}": coin for i in range(8)})


def coins(rows):
    """Eight coins that know nothing of each other."""
    tossed = np.random.default_rng(4).random((rows, 8)) < 0.5
    return pd.DataFrame({f"a{i}": tossed[:, i] for i in range(8)})


def study(table, epsilon):
    parts = [table.iloc[::2], table.iloc[1::2]]
    learns_a_network = {"views": "optimal"}  # whether columns depend or not
    return parley.simulate(
        parts, COINS, epsilon=epsilon, method="dp-subn", aggregation="clear", seed=1,
        settings=learns_a_network,
    )  # fmt: skip


def forecast_of(fitted):
    return floor_forecast(
        fitted.model,
        fitted.steps,
        fitted.sample_codes(),
        rows=fitted.rows,
        promise=fitted.study.promise,
        in_bits=False,
    )


@pytest.mark.parametrize(
    ("table", "epsilon", "below"),
    [(copies(4_000), 2, False), (coins(4_000), 0.4, True)],
)
def test_the_report_warns_exactly_where_noise_exceeds_dependence(tmp_path, table, epsilon, below):
    fitted = study(table, epsilon)
    forecast = forecast_of(fitted)
    assert forecast.below_floor is below
    write_release(tmp_path, fitted)
    assert ("Below the floor" in (tmp_path / "report.html").read_text()) is below


def test_the_floor_itself_is_not_warned_about():
    parts = [coins(500), coins(500)]
    fitted = parley.simulate(parts, COINS, epsilon=0.1, method="floor", aggregation="clear", seed=1)
    forecast = forecast_of(fitted)
    assert forecast is None or not forecast.below_floor
