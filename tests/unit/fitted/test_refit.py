"""A refit answers every step as the owners' nodes would: same counts, same law of the noise."""

from fractions import Fraction

import numpy as np
import pytest

from common.crypto.identities.identity import Identity
from common.crypto.sums.plan import Noise
from common.fitted.study import dealt_out, refit_study
from common.methods.registry import run_of
from common.methods.subn_plus.joined import JoinedModel
from common.methods.subn_plus.latent import LatentModel
from common.privacy.randomness import SeededRandomSource
from common.schema import Codes, Schema
from common.study.document import Study
from common.study.members import Member
from common.study.requests import RowsInMemory

SCHEMA = Schema.from_toml(
    "".join(
        f'[[attribute]]\nname = "{name}"\nkind = "categorical"\n'
        f"values = [{', '.join(repr(str(v)) for v in range(size))}]\n".replace("'", '"')
        for name, size in (("a", 2), ("b", 3), ("c", 4), ("d", 2))
    )
)
ROWS = (120, 80, 100)


def study(**changes):
    source = SeededRandomSource("identities")
    members = tuple(
        Member(name=name, rows=rows, identity=Identity.generate(source).public)
        for name, rows in zip(("north", "east", "south"), ROWS, strict=True)
    )
    return Study(
        **{"name": "s", "schema": SCHEMA, "members": members, "epsilon": Fraction(1), **changes}
    )


def rows():
    rng = np.random.default_rng(3)
    a = rng.integers(0, 2, sum(ROWS))
    columns = [a, rng.integers(0, 3, sum(ROWS)), rng.integers(0, 4, sum(ROWS)), a]
    return Codes.from_columns(columns, SCHEMA.sizes)


@pytest.mark.parametrize(
    "changes",
    [
        {"method": "subn+"},
        {"method": "floor"},
        {"method": "dp-subn"},
        {"method": "dp-subn", "cohorts": 2},
        {"method": "dp-subn", "profile": "paper", "noise": Noise.ONE_SHARE, "colluders": 0},
        {"method": "dp-subn", "encoding": "binary"},
        {"method": "dp-ccbn"},
        {"method": "independent"},
    ],
    ids=str,
)
def test_every_method_can_be_refitted_and_a_seed_repeats_it(changes):
    agreed = study(**changes)
    drawn = [
        refit_study(agreed, rows(), SeededRandomSource(seed)).sample(200, SeededRandomSource("r"))
        for seed in ("one", "one", "other")
    ]
    assert drawn[0].sizes == SCHEMA.sizes
    same, other = (all(map(np.array_equal, drawn[0].columns, each.columns)) for each in drawn[1:])
    assert same
    assert not other


@pytest.mark.parametrize("noise", [Noise.DISTRIBUTED, Noise.ONE_SHARE])
def test_the_noise_of_a_sum_has_the_variance_that_the_roster_states(noise):
    """Accepts the true variance; a scale of 0.7 or 1.3 times the law's would be refused."""
    profile = "sound" if noise is Noise.DISTRIBUTED else "paper"
    agreed = study(method="floor", noise=noise, profile=profile)
    step = run_of(agreed).step()
    exact = step.request.answer(RowsInMemory(rows()))
    draws = np.concatenate(
        [dealt_out(agreed, rows(), SeededRandomSource(i)).answer(step) - exact for i in range(250)]
    )
    stated = step.law.variance(agreed.noise_shares(len(ROWS)))
    assert abs(draws.mean()) < 5 * np.sqrt(stated / len(draws))
    found = (draws**2).mean() / stated
    room = 5 * np.sqrt((draws.astype(float) ** 4).mean() / stated**2 / len(draws))
    assert abs(found - 1) < room < 0.5


def test_a_sum_counts_the_rows_of_the_parties_that_are_in_it():
    agreed = study(method="floor", epsilon=Fraction(10**6))
    step = run_of(agreed).step()
    answer = dealt_out(agreed, rows(), SeededRandomSource(1)).answer(step)
    assert np.array_equal(answer, step.request.answer(RowsInMemory(rows())))


def test_a_refit_near_its_model_is_the_refit_from_a_fresh_start():
    """Nearly: the price of information is that of its model, not one chosen anew."""
    agreed = study(epsilon=Fraction(10))
    model = refit_study(agreed, rows(), SeededRandomSource("release"))
    assert isinstance(model, LatentModel | JoinedModel)
    drawn = model.sample(agreed.rows, SeededRandomSource("rows"))
    fresh = refit_study(agreed, drawn, SeededRandomSource("noise"))
    near = refit_study(agreed, drawn, SeededRandomSource("noise"), near=model)
    assert near.as_json() != fresh.as_json()
    tables = [
        np.bincount(own.columns[0] * 2 + own.columns[3].astype(int), minlength=4) / own.rows
        for own in (m.sample(100_000, SeededRandomSource("s")) for m in (model, fresh, near))
    ]
    assert abs(tables[2] - tables[1]).sum() < 0.2 * abs(tables[0] - tables[1]).sum() + 0.01
