"""A study that builds on an earlier release: the parties get it from the curator and check it."""

from functools import partial

import pytest

from common.crypto.sums.plan import Aggregation
from common.errors import PolicyError
from common.privacy.randomness import SeededRandomSource
from common.release.prior import Priors
from curator.store.records import StudyState
from parley.simulation.study import simulate
from party.journal import JournalState
from party.owner.dry_run import dry_run
from tests.harness.consortium import NAMES, Consortium, in_process
from tests.harness.run_script import chain_tables, schema_of

SCHEMA = schema_of([2] * 4)
PARTIES = NAMES[:3]


@pytest.fixture(scope="module")
def releases(tmp_path_factory):
    """Make two releases of the schema."""
    folder = tmp_path_factory.mktemp("releases")
    for seed, name in enumerate(("last", "other")):
        tables = chain_tables(4, [80, 90], seed=seed)
        rows = [SCHEMA.decode(table, SeededRandomSource(seed)) for table in tables.values()]
        simulate(rows, SCHEMA, epsilon=4, aggregation="clear", seed=seed).save(folder / name)
    return folder


def gather(folder, prior, offered):
    """Start a consortium whose curator hands out `offered` as the prior."""
    known, served = Priors(folder / "known"), Priors(folder / "served")
    digest, sent = known.add(prior).digest, served.add(offered).digest
    tables = dict(zip(PARTIES, chain_tables(4, [120, 130, 140]).values(), strict=True))
    consortium = Consortium(
        folder, PARTIES, tables=tables, schema=SCHEMA, method="subn+", prior=digest,
        aggregation=Aggregation.MASKED,
    )  # fmt: skip
    consortium.curator.begin = known.begin
    consortium.curator.prior_of = lambda study: folder / "served" / f"{sent}.zip"
    for name, party in consortium.parties.items():
        party.priors = Priors(folder / f"priors of {name}")
        party.begin = party.priors.begin
        party.forecast = partial(dry_run, begin=party.begin)
    consortium.curator.start()
    consortium.curator.studies.propose(consortium.study)
    return consortium


def test_parties_fetch_the_prior_and_all_come_to_the_same_steps(releases, tmp_path):
    consortium = gather(tmp_path, releases / "last", releases / "last")
    try:
        assert set(consortium.attend_all().values()) == {JournalState.FINISHED}
        expected = in_process(consortium, None)
        (outcome,) = consortium.curator.outcomes
        assert [s.canonical for s in outcome.steps] == [s.canonical for s in expected.steps]
        assert outcome.model.as_json() == expected.model.as_json()
        for party in consortium.parties.values():
            assert party.priors.has(consortium.study)
    finally:
        consortium.curator.stop()


def test_another_release_than_the_one_named_is_refused_before_a_row_is_read(releases, tmp_path):
    consortium = gather(tmp_path, releases / "last", releases / "other")
    party = consortium.parties["north"]
    party.rows = pytest.fail
    try:
        with pytest.raises(PolicyError, match="prior: this is release"):
            party.attend(consortium.study)
        record = consortium.curator.store.record(consortium.study.digest)
        assert record.state is StudyState.REFUSED
        assert "the prior is not the release that the study names" in record.cause
        with party.context() as context:
            assert context.ledger.spent() == 0
        assert not party.priors.has(consortium.study)
    finally:
        consortium.curator.stop()
