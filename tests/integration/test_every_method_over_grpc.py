"""Every method, profile, noise, aggregation and number of parties, over gRPC and mutual TLS."""

from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import product

import pytest

from common.crypto.sums.plan import Aggregation, Noise
from common.errors import InputError
from common.exchanges.setup import needs_key
from common.methods.registry import methods, run_of
from common.privacy.randomness import SeededRandomSource
from common.study.criteria import read_criteria
from common.study.document import PROFILES
from curator.context import FinishedStudy
from curator.publisher import fitted_study
from curator.store.records import StudyState
from party.journal import JournalState
from party.owner.dry_run import dry_run
from tests.harness.consortium import NAMES, Consortium, in_process
from tests.harness.run_script import ANALYSES, chain_tables, schema_of, study_of
from tests.unit.methods.subn_plus.test_descent import two_tables, two_trees

ATTRIBUTES = 4
ROWS = 360  # of all parties together: enough that structure is learnt
EPSILON = Fraction(4)
PARTIES = (1, 2, 3, 10)
MODES = [
    (noise, aggregation)
    for noise, aggregation in product(Noise, Aggregation)
    if noise is not Noise.NONE
]
FOR_ANY = [name for name, each in methods().items() if not each.parties]
MATRIX = list(product(FOR_ANY, PROFILES, PARTIES, MODES))

# By default: every method, every profile, every legal mode and every number of parties, once.
USUAL = [
    ("dp-subn", "sound", 3, (Noise.DISTRIBUTED, Aggregation.MASKED)),
    ("dp-subn", "paper", 3, (Noise.ONE_SHARE, Aggregation.PAILLIER)),
    ("subn+", "sound", 2, (Noise.DISTRIBUTED, Aggregation.PAILLIER)),
    ("dp-ccbn", "sound", 1, (Noise.DISTRIBUTED, Aggregation.MASKED)),
    ("independent", "sound", 3, (Noise.DISTRIBUTED, Aggregation.MASKED)),
    ("floor", "sound", 10, (Noise.DISTRIBUTED, Aggregation.MASKED)),
    ("floor", "paper", 1, (Noise.ONE_SHARE, Aggregation.CLEAR)),
    ("answers", "sound", 3, (Noise.DISTRIBUTED, Aggregation.MASKED)),
]


def refusal(profile, noise, aggregation):
    """Return why a study cannot be of this kind; "" if it can."""
    if noise is not Noise.ONE_SHARE:
        return ""
    if profile == "sound":
        return "does not protect from the other parties"
    return "cannot hide whose share" if aggregation is Aggregation.MASKED else ""


def named(value):
    if isinstance(value, tuple):
        return "-".join(word.value for word in value)
    return str(value)


LEGAL = [cell for cell in MATRIX if not refusal(cell[1], *cell[3])]
ILLEGAL = [cell for cell in MATRIX if refusal(cell[1], *cell[3])]


# A promise with a delta: every method that can keep one, both aggregations.
WITH_DELTA = [
    ("subn+", "sound", 3, (Noise.DISTRIBUTED, Aggregation.MASKED)),
    ("floor", "sound", 2, (Noise.DISTRIBUTED, Aggregation.PAILLIER)),
    ("dp-ccbn", "sound", 1, (Noise.DISTRIBUTED, Aggregation.MASKED)),
    ("answers", "sound", 2, (Noise.DISTRIBUTED, Aggregation.MASKED)),
]
DELTA = Fraction(1, 10**6)


def gather(folder, key, method, profile, parties, mode, **changes):
    noise, aggregation = mode
    rows = [ROWS // parties + i for i in range(parties)]
    tables = dict(zip(NAMES, chain_tables(ATTRIBUTES, rows).values(), strict=False))
    usual = {"tables": tables, "schema": schema_of([2] * ATTRIBUTES), "epsilon": EPSILON}
    usual |= {"analyses": ANALYSES} if method == "answers" else {}
    consortium = Consortium(
        folder, NAMES[:parties], method=method, profile=profile, noise=noise,
        aggregation=aggregation, **(usual | changes),
    )  # fmt: skip
    consortium.curator.begin = run_of
    for party in consortium.parties.values():
        party.policy = replace(party.policy, aggregations=tuple(a.value for a in Aggregation))
        party.begin = run_of
        party.forecast = partial(dry_run, begin=run_of)
    consortium.curator.start()
    consortium.curator.studies.propose(consortium.study)
    if needs_key(consortium.study):
        # One key for all tests saves their time; a study without one makes its own.
        consortium.curator.store.keep_paillier_key(consortium.study.digest, key)
    return consortium


def release_of(study, run):
    """Return all that is published: the model, the statement, and rows drawn from it."""
    outcome = FinishedStudy(
        study=study, model=run.model, steps=run.steps, results=run.results, private=False,
        traffic={},
    )  # fmt: skip
    fitted = fitted_study(outcome)
    rows = fitted.draw(50, SeededRandomSource("rows"))
    return fitted.to_json(), [column.tolist() for column in rows.columns]


def check_same_release(consortium, key):
    study, expected = consortium.study, in_process(consortium, key)
    record = consortium.curator.store.record(study.digest)
    assert (record.state, record.cause) == (StudyState.DONE, "")
    (outcome,) = consortium.curator.outcomes
    assert [step.canonical for step in outcome.steps] == [s.canonical for s in expected.steps]
    assert release_of(study, outcome) == release_of(study, expected)
    for name, party in consortium.parties.items():
        with party.context() as context:
            context.ledger.verify()
            charged = [each.charge for each in context.ledger.entries()]
            spent = context.ledger.spending(study.digest.hex())
        assert [(c.step, c.epsilon, c.rho, c.delta) for c in charged] == [
            (c.step, c.epsilon, c.rho, c.delta) for c in expected.charges[name]
        ]
        if study.profile == "sound":
            assert 0 < spent.paid <= study.promise.budget
            assert spent.epsilon <= study.epsilon


def run_and_compare(folder, key, *cell, **changes):
    consortium = gather(folder, key, *cell, **changes)
    try:
        assert set(consortium.attend_all().values()) == {JournalState.FINISHED}
        check_same_release(consortium, key)
    finally:
        consortium.curator.stop()


@pytest.mark.parametrize(("method", "profile", "parties", "mode"), USUAL, ids=named)
def test_a_method_over_grpc_releases_what_it_does_in_process(
    tmp_path, paillier_key, method, profile, parties, mode
):  # fmt: skip
    run_and_compare(tmp_path, paillier_key, method, profile, parties, mode)


@pytest.mark.parametrize(("method", "profile", "parties", "mode"), WITH_DELTA, ids=named)
def test_a_method_with_a_delta_over_grpc_releases_what_it_does_in_process(
    tmp_path, paillier_key, method, profile, parties, mode
):  # fmt: skip
    run_and_compare(tmp_path, paillier_key, method, profile, parties, mode, delta=DELTA)


@pytest.mark.parametrize("method", ["floor", pytest.param("subn+", marks=pytest.mark.slow)])
def test_criteria_over_grpc_are_judged_as_they_are_in_process(tmp_path, paillier_key, method):
    wanted = [{"share": "a0 = 1", "within": 0.1}, {"share": "a1 = 1", "within": 0.2}]
    run_and_compare(
        tmp_path, paillier_key, method, "sound", 3, (Noise.DISTRIBUTED, Aggregation.MASKED),
        criteria=read_criteria(wanted), criteria_epsilon=Fraction(1, 2),
    )  # fmt: skip


@pytest.mark.parametrize("method", ["floor", pytest.param("subn+", marks=pytest.mark.slow)])
def test_counts_that_descend_two_hierarchies_over_grpc(tmp_path, paillier_key, method):
    """With an owner that may go missing, so that every sum is one that can be recovered."""
    schema = two_trees()
    own = dict(zip(NAMES, two_tables(schema).values(), strict=False))
    run_and_compare(
        tmp_path, paillier_key, method, "sound", 4, (Noise.DISTRIBUTED, Aggregation.MASKED),
        tables=own, schema=schema, epsilon=Fraction(3, 2), may_miss=1,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("method", "profile", "parties", "mode"), LEGAL, ids=named)
def test_the_whole_matrix_over_grpc_releases_what_it_does_in_process(
    tmp_path, paillier_key, method, profile, parties, mode
):  # fmt: skip
    run_and_compare(tmp_path, paillier_key, method, profile, parties, mode)


def test_a_method_of_two_parties_over_grpc(tmp_path, paillier_key):
    mode = (Noise.DISTRIBUTED, Aggregation.MASKED)
    settings = (("divisions", 2), ("target", "a0"))
    run_and_compare(tmp_path, paillier_key, "distdiffgen", "sound", 2, mode, settings=settings)


@pytest.mark.parametrize(("method", "profile", "parties", "mode"), ILLEGAL, ids=named)
def test_what_cannot_be_is_refused_before_anybody_is_asked(method, profile, parties, mode):
    noise, aggregation = mode
    with pytest.raises(InputError, match=refusal(profile, noise, aggregation)):
        study_of(
            chain_tables(ATTRIBUTES, [10] * parties), method=method, profile=profile,
            noise=noise, aggregation=aggregation,
        )  # fmt: skip


def test_the_matrix_is_whole():
    assert len(MATRIX) == len(LEGAL) + len(ILLEGAL) == 6 * 2 * 4 * 2 * 3
    assert set(USUAL) | set(WITH_DELTA) <= set(LEGAL)
    assert {cell[0] for cell in WITH_DELTA} == {m.name for m in methods().values() if m.only_sums}
    for position, everything in enumerate((FOR_ANY, PROFILES, PARTIES)):
        assert {cell[position] for cell in USUAL} == set(everything)
    assert {cell[3] for cell in USUAL} | {(Noise.DISTRIBUTED, Aggregation.CLEAR)} == {
        cell[3] for cell in LEGAL
    }
