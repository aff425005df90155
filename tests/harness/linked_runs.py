"""Studies of people and events in one place: the real script and noise, without cryptography."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from common.methods.registry import run_of
from common.privacy.randomness import SeededRandomSource
from common.study.script import drive
from common.study.steps import OnePlace
from tests.harness.linked import SCHEMA
from tests.harness.run_script import study_of


def linked_study(tables, **changes):
    terms = {"schema": SCHEMA, "method": "subn+", **changes}
    return study_of(tables, **{**terms, "epsilon": Fraction(terms.get("epsilon", 1))})


def dealt_out(linked, owners=2):
    parts = np.array_split(np.arange(linked.rows), owners)
    return {f"p{number}": linked.take(part) for number, part in enumerate(parts)}


@dataclass
class Fitted:
    study: object
    run: object

    @property
    def steps(self):
        return self.run.steps

    @cached_property
    def model(self):
        """The model, fitted when a test asks for it."""
        return self.run.model()

    def sample(self, like, seed="rows"):
        return self.model.sample(like.rows, SeededRandomSource(seed))


def fitted(linked, *, owners=2, seed="fit", **changes):
    tables = dealt_out(linked, owners)
    study = linked_study(tables, **changes)
    place = OnePlace(study, tables, SeededRandomSource(seed))
    return Fitted(study, drive(run_of(study), place.answer))
