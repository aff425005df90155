"""Every kind of study that is offered ends, over gRPC, in a release that all parties countersign.

It is the release of the same study in one process, and every party is charged as it is there.

A cell is a method, a profile, a noise with an aggregation, a promise, whether a party may go
missing, and a number of parties. The methods are the registry's, so a new one joins by itself.

A cell that is offered is run by a curator and nodes with certificates on loopback: the curator
publishes and signs, every node fetches the release, verifies it, countersigns it and sends its
signature, and what `parley verify --all-parties` does is done. By default few cells are run, which
have every value of everything, every method in every profile, and every noise with an aggregation
in every profile; with the slow tests, all are.

A cell that is not offered is refused, by the name of what it cannot have, before anything runs.
"""

from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from common.crypto.key_files import load_identity
from common.crypto.sums.plan import Aggregation, Noise
from common.errors import InputError
from common.exchanges.replacement import Replacement
from common.exchanges.setup import needs_key
from common.methods.registry import methods, run_of
from common.privacy.randomness import SeededRandomSource
from common.release.manifest import Signer, SignerRole
from common.release.verify import verify
from common.study.analyses import read_analyses
from common.study.criteria import read_criteria
from common.study.document import PROFILES
from common.study.dry_run import steps_without_rows
from curator.context import FinishedStudy
from curator.publisher import fitted_study, publish
from curator.store.records import StudyState
from parley.cli.exit_codes import ExitCode
from parley.cli.main import main
from parley.reader.fitted import load
from party.journal import JournalState
from party.owner.dry_run import dry_run
from party.releases import Collector
from tests.harness.consortium import NAMES, Consortium, in_process
from tests.harness.run_script import ANALYSES, chain_tables, random_tables, schema_of, study_of
from tests.unit.methods.subn_plus.test_descent import two_tables, two_trees

ATTRIBUTES = 4
ROWS = 360  # of all parties together: enough that structure is learnt
EPSILON = Fraction(4)
PROMISES: dict[str, dict[str, Any]] = {
    "epsilon": {},
    "epsilon and delta": {"delta": Fraction(1, 10**6)},
    "people": {"rows_per_person": 2},
    "people and delta": {"rows_per_person": 2, "delta": Fraction(1, 10**6)},
}
SETTINGS = {"distdiffgen": {"divisions": 2, "target": "a0"}}  # of methods that need some


class Cell(NamedTuple):
    """One kind of study."""

    method: str
    profile: str
    noise: Noise
    aggregation: Aggregation
    promise: str
    may_miss: int
    parties: int

    def __str__(self):
        words = (getattr(value, "value", value) for value in self)
        return "-".join(str(word).replace(" ", "_") for word in words)

    @property
    def terms(self):
        settings = SETTINGS.get(self.method, {})
        return {
            "method": self.method, "profile": self.profile, "noise": self.noise,
            "aggregation": self.aggregation, "may_miss": self.may_miss, "epsilon": EPSILON,
            "colluders": int(not self.may_miss and self.parties > 1),
            "settings": tuple(sorted(settings.items())),
            **({"analyses": ANALYSES} if self.method == "answers" else {}),
            **PROMISES[self.promise],
        }  # fmt: skip


CELLS = [
    Cell(*values)
    for values in product(
        methods(), PROFILES, (Noise.DISTRIBUTED, Noise.ONE_SHARE), Aggregation, PROMISES, (0, 1),
        (3, 2, 1, 10),
    )
]  # fmt: skip


def refusals(cell):
    """Return the beginnings of all that can be said against a cell; nothing if it is offered."""
    method, promise = methods()[cell.method], PROMISES[cell.promise]
    against = {
        f"party: {cell.method} is for": method.parties not in (None, cell.parties),
        "noise: one share of noise": cell.profile == "sound" and cell.noise is Noise.ONE_SHARE,
        "noise: masked aggregation cannot hide": cell.noise is Noise.ONE_SHARE
        and cell.aggregation is Aggregation.MASKED,
        "may_miss: aggregation": cell.may_miss and cell.aggregation is not Aggregation.MASKED,
        "may_miss: only profile": cell.may_miss and cell.profile == "paper",
        f"may_miss: 1 of {cell.parties} part": cell.may_miss and cell.parties <= 2,
        f"may_miss: {cell.method} asks single parties": cell.may_miss and method.single_turns,
    }
    for key in promise:
        against[f"{key}: the paper's noise"] = cell.profile == "paper"
        against[f"{key}: {cell.method} also chooses"] = not method.only_sums
    return [words for words, holds in against.items() if holds]


OFFERED = [cell for cell in CELLS if not refusals(cell)]
NOT_OFFERED = [cell for cell in CELLS if refusals(cell)]


PAPERS_OWN = Cell("dp-subn", "paper", Noise.ONE_SHARE, Aggregation.PAILLIER, "epsilon", 0, 3)
MANY = Cell("floor", "sound", Noise.DISTRIBUTED, Aggregation.MASKED, "epsilon", 0, 10)


def parts(cell):
    """Return what a cell has of which the usual cells have everything."""
    mode = (cell.profile, cell.noise, cell.aggregation)
    return {mode, (cell.method, cell.profile), *cell._asdict().items()}


def covering(cells, chosen):
    """Choose more cells, greedily, until they have all parts of all cells."""
    wanted = set().union(*map(parts, cells)).difference(*map(parts, chosen))
    if not wanted:
        return chosen
    best = max(cells, key=lambda cell: len(parts(cell) & wanted))
    return covering(cells, [*chosen, best])


USUAL = covering(OFFERED, [PAPERS_OWN, MANY])


def gather(folder, cell, key, *, tables=None, schema=None, **terms):
    """Start a curator that publishes and signs, with a study of this cell."""
    rows = [ROWS // cell.parties + i for i in range(cell.parties)]
    tables = tables or dict(zip(NAMES, chain_tables(ATTRIBUTES, rows).values(), strict=False))
    consortium = Consortium(
        folder, NAMES[: cell.parties], tables=tables,
        schema=schema or schema_of([2] * ATTRIBUTES), commitments=True,
        **(cell.terms | terms),
    )  # fmt: skip
    curator = consortium.curator
    identity = load_identity(curator.ring.identity)
    consortium.study = consortium.study.signed_by(identity)
    signer = Signer(role=SignerRole.CURATOR, name="hub", identity=identity)
    curator.begin = run_of

    def sign(outcome):
        curator.outcomes.append(outcome)
        return publish(outcome, folder / "releases", signer=signer)

    curator.publish = sign
    for party in consortium.parties.values():
        party.policy = replace(
            party.policy, aggregations=tuple(a.value for a in Aggregation), min_colluders=0
        )
        party.begin = run_of
        party.forecast = partial(dry_run, begin=run_of)
    curator.start()
    curator.studies.propose(consortium.study)
    if needs_key(consortium.study):
        # One key for all tests saves their time; a study without one makes its own.
        curator.store.keep_paillier_key(consortium.study.digest, key)
    return consortium


def run_and_sign(consortium):
    """Run the study; let every node fetch and countersign its release. Return where it is."""
    assert set(consortium.attend_all().values()) == {JournalState.FINISHED}
    for name, party in consortium.parties.items():
        with party.context() as context:
            folder = party.folder / f"releases of {name}"
            collector = Collector(
                context=context, folder=folder, countersigns=True, dial=party.dial
            )
            (due,) = collector.due()
            collector.collect(due)
            (collected,) = context.collection.all().values()
        assert (collected.countersigned, collected.problem) == (True, "")
    record = consortium.curator.store.record(consortium.study.digest)
    assert (record.state, record.cause) == (StudyState.DONE, "")
    return Path(record.place)


def published(study, run):
    """Return all that is published: the model, the statement, and rows drawn from it."""
    outcome = FinishedStudy(
        study=study, model=run.model, steps=run.steps, results=run.results, private=False,
        traffic={},
    )  # fmt: skip
    fitted = fitted_study(outcome)
    rows = fitted.draw(50, SeededRandomSource("rows")).columns if fitted.has_rows else []
    return fitted.to_json(), [column.tolist() for column in rows]


def check_same_release(consortium, key):
    """Compare what the services did with the roles in one loop, without any network."""
    study, expected = consortium.study, in_process(consortium, key)
    (outcome,) = consortium.curator.outcomes
    assert [step.canonical for step in outcome.steps] == [s.canonical for s in expected.steps]
    assert published(study, outcome) == published(study, expected)
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


def check_cell(folder, cell, key, **terms):
    consortium = gather(folder, cell, key, **terms)
    check_signed(consortium)
    check_same_release(consortium, key)


def check_signed(consortium):
    """Run a study, and have its release verified with the signatures of all parties."""
    try:
        place = run_and_sign(consortium)
    finally:
        consortium.curator.stop()
    found = verify(place, all_parties=True)
    found.require()
    assert found.verified
    assert found.consistency.derived
    signers = {(each.role, each.name) for each in found.checked.signatures}
    parties = {(SignerRole.PARTY, name) for name in consortium.study.parties}
    assert signers == {(SignerRole.CURATOR, "hub"), *parties}
    return place


@pytest.mark.parametrize("cell", USUAL, ids=str)
def test_an_offered_cell_ends_in_a_release_that_all_parties_sign(tmp_path, paillier_key, cell):
    check_cell(tmp_path, cell, paillier_key)


ASKING = Cell("subn+", "sound", Noise.DISTRIBUTED, Aggregation.MASKED, "epsilon", 0, 3)
# Of more values each, so that declared tables are measured by themselves.
WIDER = (9, 4, 3, 7, 5, 8)


@pytest.mark.parametrize("method", ["subn+", "answers"])
def test_a_study_with_analyses_is_signed_by_all_and_its_answers_are_the_readers(tmp_path, method):
    schema = schema_of(WIDER)
    asked = [{"relation": ["a0", "a3"]}, {"share": "a1 = 0", "by": ["a2"]}]
    consortium = gather(
        tmp_path, ASKING, None, schema=schema, method=method,
        tables=dict(zip(NAMES, random_tables(WIDER, [300] * 3).values(), strict=False)),
        analyses=read_analyses(asked, schema),
    )  # fmt: skip
    place = check_signed(consortium)
    release = load(place)
    assert "declared tables" in [step.name for step in release.steps]
    words = [each.analysis.words for each in release.answers()]
    assert words == ["relation of a0, a3", "share of a1 = 0 by a2"]
    assert words[0] in (place / "report.html").read_text()
    assert release.has_rows == (method == "subn+")


@pytest.mark.parametrize("method", ["floor", pytest.param("subn+", marks=pytest.mark.slow)])
def test_criteria_are_judged_as_they_are_in_process(tmp_path, method):
    wanted = [{"share": "a0 = 1", "within": 0.1}, {"share": "a1 = 1", "within": 0.2}]
    criteria = {"criteria": read_criteria(wanted), "criteria_epsilon": Fraction(1, 2)}
    check_cell(tmp_path, ASKING, None, method=method, **criteria)


@pytest.mark.parametrize("method", ["floor", pytest.param("subn+", marks=pytest.mark.slow)])
def test_counts_that_descend_two_hierarchies_are_signed_by_all(tmp_path, method):
    """With an owner that may go missing, so that every sum is one that can be recovered."""
    schema, cell = two_trees(), ASKING._replace(parties=4, may_miss=1)
    tables = dict(zip(NAMES, two_tables(schema).values(), strict=False))
    terms = {"method": method, "epsilon": Fraction(3, 2)}
    check_cell(tmp_path, cell, None, tables=tables, schema=schema, **terms)


@pytest.mark.slow
@pytest.mark.parametrize("cell", [cell for cell in OFFERED if cell not in USUAL], ids=str)
def test_every_offered_cell_ends_in_a_release_that_all_parties_sign(tmp_path, paillier_key, cell):
    check_cell(tmp_path, cell, paillier_key)


def test_the_usual_cells_have_every_value_and_the_papers_own_mode_replaces_noise():
    for position in range(len(Cell._fields)):
        assert {cell[position] for cell in USUAL} == {cell[position] for cell in CELLS}
    assert {(c.method, c.profile) for c in USUAL} == {(c.method, c.profile) for c in OFFERED}
    assert {cell.method for cell in USUAL} == set(methods())
    for cell in OFFERED:
        if methods()[cell.method].replaces_noise and cell.profile == "paper":
            study = study_of_cell(cell)
            assert any(
                isinstance(step.exchange, Replacement)
                for step in steps_without_rows(study, run_of(study))
            )


def study_of_cell(cell):
    return study_of(chain_tables(ATTRIBUTES, [ROWS // cell.parties] * cell.parties), **cell.terms)


@pytest.mark.parametrize("method", methods())
def test_what_is_not_offered_is_refused_by_name(method):
    for cell in NOT_OFFERED:
        if cell.method == method:
            with pytest.raises(InputError) as refused:
                run_of(study_of_cell(cell))
            assert any(str(refused.value).startswith(words) for words in refusals(cell)), cell


# For each thing that can be said against a cell, a cell against which nothing else can be said.
REASONS = {
    words: cell
    for cell in NOT_OFFERED
    for words in [refusals(cell)[0]]
    if len(refusals(cell)) == 1 and "rows_per_person" not in PROMISES[cell.promise]
    if cell.parties > 1  # which the command makes several
}


@pytest.mark.parametrize("words", REASONS)
def test_the_command_refuses_it_before_anything_runs(tmp_path, monkeypatch, capsys, words):
    monkeypatch.chdir(tmp_path)
    cell = REASONS[words]
    Path("schema.toml").write_text(schema_of([2] * ATTRIBUTES).to_toml())
    header = ",".join(f"a{i}" for i in range(ATTRIBUTES))
    for number in range(cell.parties):
        Path(f"{number}.csv").write_text(f"{header}\n" + "0,1,0,1\n" * 40)
    command = ["simulate", *(f"{number}.csv" for number in range(cell.parties))]
    command += ["--schema", "schema.toml", "--out", "r", "--transport", "grpc"]
    terms = cell.terms
    command += [
        word for key, value in terms.pop("settings") for word in ("--set", f"{key}={value}")
    ]
    for analysis in terms.pop("analyses", ()):
        command += ["--analysis", analysis.text]
    for key, value in terms.items():
        command += [f"--{key.replace('_', '-')}", str(getattr(value, "value", value))]
    assert main(command) == ExitCode.INPUT
    assert words in capsys.readouterr().err
    assert not Path("r").exists()
