"""The hospital visits of the simulated people, with known dependence.

No real person is in them. A person's age, smoking and illness set how often she comes and with
what. A diagnosis tends to stay from one visit to the next, or leads to the one that follows it:
hypertension to heart failure, diabetes to kidney disease. The diagnosis sets the department and
how long she stays; an emergency is likelier at the first visit, and keeps her longer.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from common.schema import Schema
from parley.simulation.population import demo_schema_toml, make_population

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
    """Return the public schema of people and visits."""
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


def _pick(rng: np.random.Generator, weights: NDArray[np.float64]) -> NDArray[np.int64]:
    ladder = np.cumsum(weights, axis=1)
    height = rng.random(len(weights)) * ladder[:, -1]
    return np.asarray((height[:, None] >= ladder).sum(axis=1), dtype=np.int64)
