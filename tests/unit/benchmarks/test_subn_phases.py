"""Every variant of subn+ runs, changes what it says it changes, and leaves nothing behind."""

from fractions import Fraction

import numpy as np
import pytest
from rich.console import Console

from benchmarks import subn_phases
from benchmarks.privbayes_data import Dataset
from benchmarks.subn_data import Setting
from benchmarks.subn_methods import FLOOR
from benchmarks.subn_phases import labels_of, mark, measure, point_of, report
from benchmarks.subn_sweep import Results
from benchmarks.subn_variants import GROUPED, VARIANTS, WHOLE
from common.bayes.privbayes.decisions import Encoding
from common.methods.subn_plus import latent
from common.methods.subn_plus.budget import PublicFacts, decide_budget
from common.schema.codes import Codes
from common.schema.hierarchy import Hierarchy

ROWS = 20_000
# What subn+ does with the made-up tables: halves, few groups, many groups, margins only; views.
STUDIES = (
    ("grouped", "0.1"),
    ("grouped", "0.15"),
    ("grouped", "1"),
    ("grouped", "0.05"),
    ("bits", "0.4"),
)


def _setting(name, columns, sizes):
    codes = Codes.from_columns(columns, sizes)
    flat = tuple(Hierarchy.flat([str(code) for code in range(size)]) for size in sizes)
    return Setting(name, Dataset(name, codes, flat, Encoding.VANILLA, (2, 3), (), None))


@pytest.fixture(scope="module")
def made_up():
    """Seven columns, two pairs of which depend, one strongly; and twelve bits."""
    generator = np.random.default_rng(5)
    sizes = (9, 9, 12, 2, 2, 8, 3)
    columns = [np.minimum(generator.geometric(0.3, ROWS) - 1, size - 1) for size in sizes]
    columns[1] = np.where(generator.random(ROWS) < 0.7, 8 - columns[0], columns[1])
    columns[5] = np.where(generator.random(ROWS) < 0.35, columns[2] % 8, columns[5])
    hidden = generator.integers(0, 4, ROWS)
    bits = [(generator.random(ROWS) < 0.2 + 0.2 * hidden).astype(int) for _ in range(12)]
    return {
        "grouped": _setting("grouped", columns, sizes),
        "bits": _setting("bits", bits, (2,) * 12),
    }


@pytest.fixture(autouse=True)
def _short_fits(monkeypatch):
    monkeypatch.setitem(latent.fit.__kwdefaults__, "iterations", 25)


@pytest.fixture(scope="module")
def whole(made_up):
    """What subn+ itself makes of a study, once for all variants."""
    known = {}

    def distances(study):
        if study not in known:
            known[study] = measure(made_up[study[0]], point_of(WHOLE, study), 0)
        return known[study]

    return distances


def _facts(setting, epsilon):
    return PublicFacts(
        sizes=setting.schema.sizes,
        parties=tuple("abcdefghij"),
        rows=ROWS,
        epsilon=Fraction(epsilon),
        noise_shares=Fraction(10, 9),
    )


def test_the_made_up_studies_take_every_way_of_subn_plus(made_up):
    ways = []
    for name, epsilon in STUDIES:
        budget = decide_budget(_facts(made_up[name], epsilon))
        ways.append((budget.groups, budget.design is not None))
    assert ways == [(2, False), (4, True), (6, True), (0, False), (2, True)]


@pytest.mark.parametrize("label", [label for label in VARIANTS if label != WHOLE])
def test_a_variant_changes_what_is_made_of_some_study(label, made_up, whole):
    assert any(
        measure(made_up[study[0]], point_of(label, study), 0) != whole(study) for study in STUDIES
    )


def test_nothing_of_a_variant_stays(made_up, whole):
    study = STUDIES[0]
    for variant in VARIANTS.values():
        with variant.at_work():
            pass
    assert measure(made_up[study[0]], point_of(WHOLE, study), 0) == whole(study)


def test_marks_say_worse_better_same_or_nothing():
    base = [0.10, 0.11, 0.12, 0.13]
    assert mark([v + 0.05 for v in base], base) == "+"
    assert mark([v - 0.05 for v in base], base) == "-"
    assert mark(list(base), base) == "="
    assert mark([0.13, 0.10, 0.12, 0.11], base) == ""
    assert mark([0.2], base) == ""


def test_what_was_measured_is_read_again_and_printed(tmp_path, monkeypatch):
    monkeypatch.setattr(subn_phases, "RESULTS", tmp_path)
    results = Results(tmp_path / "runs.jsonl", code="x")
    for label in labels_of(constant=False):
        for run in range(3):
            worse = 0.1 if label == FLOOR else 0.0
            values = {"tvd2": 0.05 + worse + run / 100, "tvd3": 0.1 + worse}
            results.add(point_of(label, GROUPED[0]), run, values)
    again = Results(results.path, code="x")
    again.load()
    report(Console(quiet=True), again)
    text = (tmp_path / "subn_phases.md").read_text()
    assert "| all of it | .0600 / .1000 |" in text
    assert "| floor | .1600+ / .2000+ |" in text
    assert "| margins only | .0600= / .1000= |" in text
