"""The comparators of the papers against answers known by hand, and the list of figures."""

import importlib.util
import inspect
import re
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from benchmarks.measuring import sweep
from benchmarks.papers import classifiers, marginal_methods
from benchmarks.papers.__main__ import FIGURES, main
from benchmarks.papers.figure import Options
from benchmarks.papers.marginal_methods import covering_design
from benchmarks.research_tables import adult_rows, coded_adult, made_of
from common.marginals import count
from common.methods.designs.nocd import optimal_design
from common.privacy.randomness import SeededRandomSource
from common.schema.codes import Codes

QUIET = Fraction(10**6)
ROOT = Path(__file__).resolve().parents[3]
COMMAND = re.compile(r"python -m (benchmarks[\w.]*\w)")


def bits(rows=2000, width=6):
    rng = np.random.default_rng(1)
    first = rng.integers(0, 2, rows)
    columns = [first] + [first ^ (rng.random(rows) < 0.2) for _ in range(width - 1)]
    return Codes.from_columns(columns, [2] * width)


@pytest.mark.parametrize("name", ["laplace", "fourier"])
def test_without_noise_the_baselines_are_exact(name):
    codes = bits()
    answers = getattr(marginal_methods, name)(codes, 3, QUIET, SeededRandomSource(1))
    assert marginal_methods.average_distance(codes, answers, 3) < 1e-3


@pytest.mark.parametrize(("name", "most"), [("contingency", 0.03), ("mwem", 0.06)])
def test_the_others_come_close_and_noise_hurts_them(name, most):
    codes = bits()
    method = getattr(marginal_methods, name)
    quiet = method(codes, 2, Fraction(1), SeededRandomSource(1))
    loud = method(codes, 2, Fraction(1, 500), SeededRandomSource(1))
    errors = [marginal_methods.average_distance(codes, each, 2) for each in (quiet, loud)]
    assert errors[0] < most < errors[1]


def test_laplace_has_the_noise_that_its_sensitivity_asks_for():
    """Of 15 tables together: deviations of scale 30 / epsilon, neither 0.7 nor 1.3 times it."""
    codes = bits()
    found = []
    for seed in range(200):
        answers = marginal_methods.laplace(codes, 2, Fraction(2), SeededRandomSource(seed))
        exact = count(codes, list(combinations(range(6), 2)))
        found += [(a[0, 0] - e[0, 0] / 2000) * 2000 for a, e in zip(answers, exact, strict=True)]
    # Scaling to one takes off a share of the table's total noise: the variance is known from it.
    spread = np.std(found)
    share = exact[0][0, 0] / 2000
    expected = 15 * np.sqrt(2) * np.sqrt((1 - share) ** 2 + 3 * share**2)
    assert 0.9 < spread / expected < 1.1


def test_views_that_agree_keep_what_they_say_and_disagreeing_ones_meet():
    codes = bits()
    views = {view: table * 1.0 for view, table in zip(
        [(0, 1, 2), (1, 2, 3)], count(codes, [(0, 1, 2), (1, 2, 3)]), strict=True)}  # fmt: skip
    same = marginal_methods.agreed(views, codes.rows)
    assert all(np.allclose(same[view], table) for view, table in views.items())
    views[0, 1, 2] = views[0, 1, 2] + np.random.default_rng(2).normal(0, 20, (2, 2, 2))
    met = marginal_methods.agreed(views, codes.rows)
    np.testing.assert_allclose(met[0, 1, 2].sum(axis=0), met[1, 2, 3].sum(axis=2))
    assert met[0, 1, 2].sum() == pytest.approx(codes.rows)


@pytest.mark.parametrize("design", [covering_design([2] * 6, 3), optimal_design([2] * 6)])
def test_views_give_back_their_pairs_and_fit_triples(design):
    codes = bits()
    for order, most in ((2, 1e-3), (3, 0.05)):
        answers = marginal_methods.from_views(
            codes, design, order, QUIET, SeededRandomSource(1), consistent=design.views[0] < (9,)
        )
        assert marginal_methods.average_distance(codes, answers, order) < most


def test_the_fit_of_most_entropy_is_that_of_a_chain():
    first = np.array([[0.4, 0.1], [0.1, 0.4]])
    table = marginal_methods.fitted((0, 1, 2), (2, 2, 2), {(0, 1): first, (1, 2): first})
    expected = first[:, :, None] * first[None, :, :] / 0.5
    np.testing.assert_allclose(table, expected, atol=1e-9)


def test_private_classifiers_learn_at_a_large_budget_only():
    rng = np.random.default_rng(3)
    x = rng.standard_normal((4000, 5))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    signs = np.where(x[:, 0] + 0.1 * rng.standard_normal(4000) > 0, 1.0, -1.0)
    rows = csr_matrix(x)
    for epsilon, best in ((50.0, True), (1e-4, False)):
        erm = classifiers.private_erm(rows, signs, epsilon, np.random.default_rng(1))
        gene = classifiers.priv_gene(
            rows, signs, epsilon, np.random.default_rng(1), SeededRandomSource(1)
        )
        assert (classifiers.error_of(erm, rows, signs) < 0.1) == best
        assert (classifiers.error_of(gene, rows, signs) < 0.2) == best


def test_every_figure_is_listed_once_and_says_what_it_shows(capsys):
    names = [figure.name for figure in FIGURES]
    assert len(set(names)) == len(names)
    assert {f"privbayes-{n}" for n in range(4, 20)} <= set(names)
    assert {f"subn-{n}" for n in range(4, 9)} <= set(names)
    assert all(figure.shows and (figure.run or figure.where) for figure in FIGURES)
    assert main(["list"]) == 0
    assert "privbayes-12" in capsys.readouterr().out


def test_a_table_that_is_not_here_is_told(monkeypatch, capsys):
    monkeypatch.setattr("benchmarks.papers.privbayes_figures.available", lambda: ([], []))
    assert main(["run", "privbayes-12"]) == 1
    assert "research_tables" in capsys.readouterr().out


def test_adult_is_made_of_the_two_files_of_its_repository():
    line = ("{}, Private, 77516, Bachelors, 13, Divorced, Sales, Wife, White, Male, 0, 0, {}, "
            "Cuba, <=50K{}\n")  # fmt: skip
    files = {
        "adult.data": (line.format(17, 50, "") + line.format(40, "?", "")).encode(),
        "adult.test": ("|1x3 Cross validator\n" + line.format(90, 99, ".")).encode(),
    }
    coded = coded_adult(adult_rows(files))
    assert coded["age"].tolist() == [0, 15]
    assert coded["hours-per-week"].tolist() == [7, 15]  # 50 is on an edge, and in the lower bin
    assert coded["native-country"].tolist() == [12, 12]
    assert set(made_of(files)) == {
        "adult-raw.csv", "adult.csv", "adult-labels.json", "adult-domain.json"
    }  # fmt: skip


def test_a_sweep_averages_runs_line_by_line():
    def measure(value, run):
        yield {"method": "a"}, value + run
        yield {"method": "b"}, 2.0 * value

    lines = sweep({"x": 1, "y": 10}, 2, measure)
    assert lines == [
        {"method": "a", "x": 1.5, "y": 10.5, "± at most": pytest.approx(0.5)},
        {"method": "b", "x": 2.0, "y": 20.0, "± at most": 0.0},
    ]
    assert sweep({"x": 1}, 1, measure)[0] == {"method": "a", "x": 1}


@pytest.mark.parametrize("name", ["privelet-9", "privelet-13"])
def test_a_figure_of_another_benchmark_names_one_that_there_is(name, monkeypatch):
    asked = []
    monkeypatch.setattr(
        "benchmarks.papers.privelet_figures.subprocess.run",
        lambda words, check: asked.append(words),
    )
    figure = next(each for each in FIGURES if each.name == name)
    ((command,),) = [list(line.values()) for line in figure.run(Options(1))]
    module, options = asked[0][2], asked[0][3:]
    assert command == " ".join(["python -m", module, *options])
    source = inspect.getsource(importlib.import_module(module))
    assert all(f'"{option}"' in source for option in options)


def test_every_command_of_the_documentation_is_a_module():
    pages = [*ROOT.glob("docs/**/*.md"), ROOT / "Makefile", ROOT / "README.md"]
    named = {each for page in pages for each in COMMAND.findall(page.read_text())}
    assert len(named) > 15
    assert [each for each in sorted(named) if importlib.util.find_spec(each) is None] == []
