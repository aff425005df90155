"""A simulated population with known structure, for the demonstration and the benchmarks.

No real person is in it. Each attribute is drawn from its parents by a fixed rule, so that what a
synthetic table should have learnt is known: age drives marital status, education and health;
education drives occupation; occupation and age drive income; income and region drive housing.

A person's age, smoking and illness set how often she comes to a hospital and with what. A diagnosis
tends to stay from one visit to the next, or leads to the one that follows it: hypertension to heart
failure, diabetes to kidney disease. The diagnosis sets the department and how long she stays; an
emergency is likelier at the first visit, and keeps her longer.
"""

from __future__ import annotations

import datetime
from importlib import resources

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from common.schema import Schema

REGIONS = ("North", "East", "South", "West", "Capital", "Islands")
EDUCATION = ("No school", "Primary", "Secondary", "Vocational", "Bachelor", "Master", "Doctorate")
MARITAL = ("Single", "Married", "Divorced", "Widowed")
OCCUPATIONS = (
    "Farming", "Crafts", "Factory", "Transport", "Sales", "Office", "Teaching", "Health care",
    "Engineering", "Management", "Not working", "Retired",
)  # fmt: skip
HOUSING = ("Owner", "Mortgage", "Tenant", "With family")


def demo_schema_toml() -> str:
    """Return the public schema of the population, as the text of a schema.toml."""
    schema = resources.files("parley.simulation").joinpath("population.schema.toml")
    return schema.read_text("utf-8")


def make_population(rows: int, *, seed: int) -> pd.DataFrame:
    """Simulate `rows` people; the same seed makes the same people."""
    rng = np.random.default_rng(seed)
    age = np.clip(rng.gamma(6.0, 7.5, rows), 0, 99).astype(np.int64)
    region = rng.choice(len(REGIONS), rows, p=[0.2, 0.17, 0.23, 0.15, 0.21, 0.04])
    sex = rng.choice(["Female", "Male"], rows, p=[0.51, 0.49])
    education = _education(rng, age, region)
    marital = _marital(rng, age)
    occupation = _occupation(rng, age, education)
    income = _income(rng, age, education, occupation)
    housing = _housing(rng, age, income, region)
    smoker = rng.random(rows) < 0.33 - 0.04 * education + 0.05 * (sex == "Male")
    risk = -2.2 + 0.035 * (age - 50) + 0.9 * smoker - 0.15 * education
    visits = np.minimum(rng.poisson(np.exp(0.3 + 0.6 * risk + 1.2)), 30)
    chronic = rng.random(rows) < 1 / (1 + np.exp(-risk))
    day = rng.integers(0, 730, rows) - 90 * (chronic & (rng.random(rows) < 0.5))
    first = np.datetime64(datetime.date(2024, 1, 1), "D")
    blood_pressure = np.clip(rng.normal(112 + 0.35 * age + 9 * chronic, 12), 80.0, 219.9)
    return pd.DataFrame(
        {
            "age": age,
            "sex": sex,
            "region": np.array(REGIONS)[region],
            "education": np.array(EDUCATION)[education],
            "marital_status": np.array(MARITAL)[marital],
            "occupation": np.array(OCCUPATIONS)[occupation],
            "income": income,
            "housing": pd.Series(np.array(HOUSING, dtype=object)[housing]).mask(
                rng.random(rows) < 0.03
            ),
            "smoker": smoker,
            "chronic_illness": chronic,
            "visits": visits,
            "blood_pressure": np.round(blood_pressure, 1),
            "last_visit": (first + np.clip(day, 0, 729)).astype("datetime64[s]"),
        }
    )


def _pick(rng: np.random.Generator, weights: NDArray[np.float64]) -> NDArray[np.int64]:
    """Draw one index per row of non-negative weights."""
    ladder = np.cumsum(weights, axis=1)
    height = rng.random(len(weights)) * ladder[:, -1]
    below = (height[:, None] >= ladder).sum(axis=1)
    return np.asarray(np.minimum(below, weights.shape[1] - 1), dtype=np.int64)


def _education(
    rng: np.random.Generator, age: NDArray[np.int64], region: NDArray[np.int64]
) -> NDArray[np.int64]:
    centre = 3.3 - 0.018 * np.maximum(age - 35, 0) + 0.8 * (region == 4) - 0.4 * (region == 5)
    ceiling = np.select([age < 6, age < 12, age < 18, age < 22], [0, 1, 2, 3], 6)
    levels = np.arange(len(EDUCATION))
    weights = np.exp(-0.5 * (levels - centre[:, None]) ** 2 / 1.3)
    return _pick(rng, np.where(levels <= ceiling[:, None], weights, 1e-9))


def _marital(rng: np.random.Generator, age: NDArray[np.int64]) -> NDArray[np.int64]:
    grown = np.maximum(age - 18, 0)
    weights = np.stack(
        [
            np.exp(-grown / 11.0) + 0.08,
            1 - np.exp(-grown / 11.0),
            0.22 * (1 - np.exp(-np.maximum(age - 25, 0) / 15.0)),
            0.004 * np.exp(np.maximum(age - 45, 0) / 10.0) * (age >= 30),
        ],
        axis=1,
    )
    weights[age < 18, 1:] = 0.0
    return _pick(rng, weights)


def _occupation(
    rng: np.random.Generator, age: NDArray[np.int64], education: NDArray[np.int64]
) -> NDArray[np.int64]:
    needs = np.array([1.0, 2.6, 1.8, 2.2, 2.6, 3.2, 4.8, 4.2, 4.9, 4.7])
    working = np.exp(-0.5 * (needs - education[:, None]) ** 2 / 0.9)
    weights = np.hstack([working, np.full((len(age), 1), 0.35), np.zeros((len(age), 1))])
    weights[age < 16] = [0.0] * 10 + [1.0, 0.0]
    old = age >= 66
    weights[old, :11] *= 0.05
    weights[old, 11] = 2.0
    return _pick(rng, weights)


def _income(
    rng: np.random.Generator,
    age: NDArray[np.int64],
    education: NDArray[np.int64],
    occupation: NDArray[np.int64],
) -> NDArray[np.int64]:
    pay = np.array([16, 22, 21, 22, 20, 26, 33, 34, 45, 55, 3, 15])[occupation] * 1000.0
    raised = pay * (0.75 + 0.08 * education) * (1 + 0.006 * np.clip(age - 25, 0, 30))
    income = raised * rng.lognormal(0.0, 0.25, len(age)) * (age >= 16)
    return np.asarray(np.clip(income, 0, 149_999), dtype=np.int64)


def _housing(
    rng: np.random.Generator,
    age: NDArray[np.int64],
    income: NDArray[np.int64],
    region: NDArray[np.int64],
) -> NDArray[np.int64]:
    wealth = income / 30_000
    weights = np.stack(
        [
            0.2 + 0.02 * np.maximum(age - 40, 0) + 0.1 * wealth,
            np.where((age > 25) & (age < 66), 0.5 * wealth, 0.02),
            0.7 + 0.6 * (region == 4),
            np.where(age < 25, 4.0, 0.1),
        ],
        axis=1,
    )
    return _pick(rng, weights)


PERSON = "patient"
_PEOPLE = ("age", "sex", "region", "education", "income", "smoker", "chronic_illness")
_EVENTS = """
[events]
name = "visits"
most = 8
order = "day"

[[events.attribute]]
name = "diagnosis"
kind = "categorical"
values = ["Check-up", "Injury", "Infection", "Asthma", "Hypertension", "Heart failure", "Diabetes",
          "Kidney disease", "Cancer", "Pregnancy"]

[[events.attribute]]
name = "department"
kind = "categorical"
values = ["General", "Surgery", "Cardiology", "Internal", "Oncology", "Obstetrics"]

[[events.attribute]]
name = "emergency"
kind = "boolean"

[[events.attribute]]
name = "nights"
kind = "integer"
min = 0
max = 14
bins = 5
clip = true
"""
_LEADS_TO = np.array([0, 0, 2, 3, 5, 5, 7, 7, 8, 0])
_STAYS = np.array([0.2, 0.2, 0.15, 0.6, 0.5, 0.7, 0.5, 0.7, 0.75, 0.7])
_DEPARTMENT = np.array([0, 1, 0, 3, 2, 2, 3, 3, 4, 5])
_NIGHTS = np.array([0.1, 1.5, 1.0, 0.8, 0.7, 4.0, 1.2, 3.0, 5.0, 1.5])


def linked_schema() -> Schema:
    people = Schema.from_toml(demo_schema_toml())
    events = Schema.from_toml(demo_schema_toml() + _EVENTS).events
    attributes = tuple(people.attributes[people.position(name)] for name in _PEOPLE)
    return Schema(attributes, events=events)


def make_linked_population(people: int, *, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Simulate people and their visits, joined by `patient`; the same seed makes the same."""
    table = make_population(people, seed=seed)[list(_PEOPLE)]
    table.insert(0, PERSON, np.arange(1, people + 1))
    rng = np.random.default_rng(seed + 1)
    age, ill = (table[name].to_numpy(dtype=np.float64) for name in ("age", "chronic_illness"))
    numbers = np.asarray(rng.poisson(np.exp(0.1 + 0.012 * (age - 40) + 0.7 * ill)), dtype=np.int64)
    who = np.repeat(np.arange(people), numbers)
    place = np.arange(len(who)) - np.repeat(np.cumsum(numbers) - numbers, numbers)
    odds = _first_diagnosis(table)
    diagnosis = _pick(rng, odds[who])
    for step in range(1, int(numbers.max(initial=0))):
        at = np.flatnonzero(place == step)
        before, draw = diagnosis[at - 1], rng.random(len(at))
        stays = draw < _STAYS[before]
        leads = ~stays & (draw < _STAYS[before] + 0.15)
        diagnosis[at] = np.where(stays, before, np.where(leads, _LEADS_TO[before], diagnosis[at]))
    usual = rng.random(len(who)) < 0.9
    emergency = rng.random(len(who)) < np.array([0.02, 0.6, 0.3])[np.minimum(diagnosis, 2)] + (
        0.1 * (place == 0)
    )
    visits = pd.DataFrame(
        {
            PERSON: who + 1,
            "day": place * 30 + rng.integers(0, 30, len(who)),
            "diagnosis": np.array(_words("diagnosis"))[diagnosis],
            "department": np.array(_words("department"))[
                np.where(usual, _DEPARTMENT[diagnosis], rng.integers(0, 6, len(who)))
            ],
            "emergency": emergency,
            "nights": rng.poisson(_NIGHTS[diagnosis] * (1 + emergency)),
        }
    )
    return table, visits


def _words(attribute: str) -> list[str]:
    schema = linked_schema().of_events
    domain = schema.attributes[schema.position(attribute)].domain
    return [str(value) for value in getattr(domain, "values", ())]


def _first_diagnosis(people: pd.DataFrame) -> NDArray[np.float64]:
    """Return how likely a person comes with each diagnosis."""
    age = people.age.to_numpy(dtype=np.float64)
    ill, smokes = people.chronic_illness.to_numpy(), people.smoker.to_numpy()
    young = np.exp(-age / 25)
    old = 1 / (1 + np.exp(-(age - 60) / 8))
    bears = ((people.sex == "Female") & people.age.between(18, 44)).to_numpy()
    return np.stack(
        [
            np.full(len(age), 0.6),
            0.4 + young,
            0.5 + 0.8 * young,
            0.2 + 0.6 * smokes,
            0.1 + 1.2 * old + 0.4 * ill,
            0.02 + 0.5 * old * (1 + ill),
            0.1 + 0.6 * ill,
            0.02 + 0.2 * old * (1 + 2 * ill),
            0.03 + 0.4 * old * (1 + smokes),
            1.2 * bears,
        ],
        axis=1,
    )
