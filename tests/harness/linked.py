"""People with events of a known dependence, as data frames and as codes."""

import numpy as np
import pandas as pd

from common.schema import Schema
from common.schema.linked import encode_linked

SCHEMA = Schema.from_toml("""
attribute = [
  { name = "sex", kind = "categorical", values = ["F", "M"] },
  { name = "age", kind = "integer", min = 0, max = 89, bins = 6 },
]

[events]
name = "visits"
most = 4
order = "day"
attribute = [
  { name = "diagnosis", kind = "categorical", values = ["a", "b", "c", "d"] },
  { name = "ward", kind = "categorical", values = ["x", "y", "z"] },
]
""")

RULED = Schema.from_toml(f"""{SCHEMA.to_toml()}
[[events.rule]]
when = "sex = M"
then = "diagnosis != a"

[[events.rule]]
impossible = "diagnosis = b and ward = x"
""")


def frames(people, seed=0):
    """People whose age sets the first diagnosis, which stays; the ward follows the diagnosis."""
    rng = np.random.default_rng(seed)
    ages = rng.integers(0, 90, people)
    numbers = rng.integers(0, 7, people)  # more than count, too
    first = pd.DataFrame({"id": np.arange(people), "sex": rng.choice(["F", "M"], people)})
    first["age"] = ages
    rows = []
    for person in range(people):
        kind = min(ages[person] // 30, 2) if rng.random() < 0.9 else rng.integers(4)
        for day in range(numbers[person]):
            kind = kind if rng.random() < 0.8 else rng.integers(4)
            ward = kind % 3 if rng.random() < 0.8 else rng.integers(3)
            rows.append((person, day, "abcd"[kind], "xyz"[ward]))
    events = pd.DataFrame(rows, columns=["id", "day", "diagnosis", "ward"])
    return first, events.sample(frac=1, random_state=seed)  # the order is in the column `day`


def linked_codes(people, seed=0):
    return encode_linked(SCHEMA, *frames(people, seed), person="id")


def shared_out(first, events, owners):
    """Deal people out to owners, with their events."""
    return [
        (first[first.id % owners == own], events[events.id % owners == own])
        for own in range(owners)
    ]
