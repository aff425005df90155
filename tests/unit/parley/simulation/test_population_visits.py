"""The simulated visits fit their schema, can be made again, and have the structure promised."""

import numpy as np
import pandas as pd

from common.schema.linked import encode_linked
from parley.simulation.population import PERSON, linked_schema, make_linked_population


def test_people_and_visits_fit_their_schema():
    linked = encode_linked(linked_schema(), *make_linked_population(3_000, seed=1), person=PERSON)
    assert linked.rows == 3_000
    assert 0 < (linked.numbers == 0).mean() < 0.5
    assert linked.numbers.max() == 8


def test_the_same_seed_makes_the_same_visits():
    one, other = (make_linked_population(200, seed=3)[1] for _ in range(2))
    pd.testing.assert_frame_equal(one, other)
    assert not one.equals(make_linked_population(200, seed=4)[1])


def test_the_promised_dependences_are_there():
    people, visits = make_linked_population(20_000, seed=5)
    joined = visits.merge(people, on=PERSON)
    old = joined.age >= 65
    rates = [(joined.diagnosis[who] == "Hypertension").mean() for who in (old, ~old)]
    assert rates[0] > 1.5 * rates[1]
    pregnant = joined[joined.diagnosis == "Pregnancy"]
    assert (pregnant.sex == "Female").mean() > 0.95
    same = visits[PERSON].eq(visits[PERSON].shift(-1))
    after = visits.diagnosis.shift(-1)[same]
    ill = visits.diagnosis[same] == "Heart failure"
    assert (after[ill] == "Heart failure").mean() > 0.7
    assert (visits.department[visits.diagnosis == "Cancer"] == "Oncology").mean() > 0.8
    assert (
        np.corrcoef(people.age, people[PERSON].map(visits[PERSON].value_counts()).fillna(0))[0, 1]
        > 0.2
    )
