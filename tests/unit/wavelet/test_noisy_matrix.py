"""From rows to a release, a file, and answers."""

import json
import zipfile
from fractions import Fraction

import numpy as np
import pytest

from common.errors import InputError, LocalError, PolicyError
from common.privacy.accountant import Accountant
from common.privacy.randomness import OsRandomSource, SeededRandomSource
from common.privacy.sampling.discrete_laplace import discrete_laplace_variance
from common.release.range_file import load, save
from common.schema import Codes, Schema
from common.wavelet import plan_privelet, privelet

SCHEMA = Schema.from_toml(
    """
[[attribute]]
name = "age"
kind = "integer"
min = 0
max = 199
bins = 200

[[attribute]]
name = "sex"
kind = "categorical"
values = ["Female", "Male"]

[[attribute]]
name = "country"
kind = "categorical"
values = ["France", "USA", "Spain", "Canada"]
missing = true
hierarchy = { Europe = ["France", "Spain"], America = ["USA", "Canada"] }
"""
)
ROWS = 20_000


@pytest.fixture(scope="module")
def codes():
    rng = np.random.default_rng(0)
    age = np.minimum(rng.gamma(4, 15, ROWS), 199).astype(int)
    return Codes.from_columns(
        [age, rng.integers(0, 2, ROWS), rng.integers(0, 5, ROWS)], SCHEMA.sizes
    )


def _accountant(cap=None):
    return Accountant({"owner": cap})


def _release(codes, method="privelet+", seed=1, epsilon=1):
    return _privelet(codes, epsilon, SeededRandomSource(seed), method=method)


def _privelet(codes, epsilon, source, accountant=None, **options):
    return privelet(
        codes,
        SCHEMA,
        epsilon=epsilon,
        source=source,
        accountant=accountant or _accountant(),
        **options,
    )


@pytest.mark.parametrize("method", ["basic", "privelet", "privelet+", "privelet*"])
def test_every_method_answers_near_the_truth(codes, method):
    release = _release(codes, method, epsilon=50)
    answer = release.count(
        "age in 20..69 and sex = Female and country in Europe", confidence=0.999999
    )
    age, sex, country = codes.columns
    truth = ((age >= 20) & (age < 70) & (sex == 0) & np.isin(country, [0, 2])).sum()
    if method == "privelet*":
        assert answer.standard_deviation is answer.low is answer.high is None
        assert answer.value == pytest.approx(truth, abs=50)
    else:
        assert answer.low <= truth <= answer.high
        assert answer.low < answer.value < answer.high
        assert answer.standard_deviation < 30


def test_batches_and_single_questions_agree(codes):
    release = _release(codes)
    queries = ["", "age >= 100", "sex = Male and country = (missing)", "country in America"]
    many = release.counts(queries)
    for number, query in enumerate(queries):
        one = release.count(query)
        assert one.value == many.values[number]
        assert one.standard_deviation == many.standard_deviations[number]
        assert (one.low, one.high) == (many.low[number], many.high[number])
    assert len(release.counts([]).values) == 0


def test_the_matrix_is_in_the_order_of_the_schema(codes):
    counts = np.zeros(SCHEMA.sizes)
    np.add.at(counts, tuple(codes.columns), 1)
    for method in ("basic", "privelet", "privelet+"):
        close = _release(codes, method, epsilon=10**4).matrix()
        assert close.shape == SCHEMA.sizes
        assert np.abs(close - counts).max() < 1
    assert np.array_equal(
        _release(codes, "basic").matrix(), np.rint(_release(codes, "basic").matrix())
    )


def test_answers_are_sums_of_the_matrix_where_no_padding_is_used(codes):
    release = _release(codes)
    matrix = release.matrix()
    value = release.count("age in 3..77 and country in Europe").value
    assert value == pytest.approx(matrix[3:78, :, [0, 2]].sum())


def test_the_total_uses_the_padding_of_the_haar_axis(codes):
    release = _release(codes)
    assert [axis.kind for axis in release.plan.axes] == ["haar", "untransformed", "untransformed"]
    variance = 10 * discrete_laplace_variance(release.plan.scale)
    assert release.count("").standard_deviation == pytest.approx(np.sqrt(variance))


def test_the_plan_states_what_was_spent(codes):
    plan = plan_privelet(SCHEMA, "0.5")
    assert (plan.epsilon, plan.sensitivity, plan.scale) == (Fraction(1, 2), 9, 36)
    assert _release(codes, epsilon=0.5).plan.scale == 36
    named = plan_privelet(SCHEMA, 1, untransformed=["country"])
    assert [axis.kind for axis in named.axes] == ["haar", "nominal", "untransformed"]


def test_unknown_attributes_and_bad_budgets_are_refused():
    with pytest.raises(InputError, match="agee"):
        plan_privelet(SCHEMA, 1, untransformed=["agee"])
    with pytest.raises(InputError, match="unknown rule 'best'"):
        plan_privelet(SCHEMA, 1, untransformed="best")
    for epsilon in (0, -1, "nan", "inf", "much"):
        with pytest.raises(InputError):
            plan_privelet(SCHEMA, epsilon)


def test_a_domain_too_large_is_refused_before_the_rows_are_read(codes):
    with pytest.raises(InputError, match=r"2,000 cells .*PrivBayes"):
        _privelet(codes, 1, SeededRandomSource(0), max_cells=1000)


@pytest.mark.parametrize("method", ["basic", "privelet", "privelet+", "privelet*"])
def test_exactly_epsilon_is_charged(codes, method):
    accountant = _accountant(Fraction(1, 3))
    _privelet(codes, "1/3", SeededRandomSource(0), accountant, method=method)
    assert accountant.spent("owner") == Fraction(1, 3)
    assert method in accountant.charges[0].mechanism


class ForbiddenSource:
    private = True

    def random_bytes(self, count):
        raise AssertionError("noise was drawn")

    words = random_bytes


def test_an_overspent_budget_is_refused_before_a_draw(codes):
    accountant = _accountant(Fraction(1, 2))
    with pytest.raises(PolicyError, match="cap"):
        _privelet(codes, 1, ForbiddenSource(), accountant)
    assert accountant.spent("owner") == 0


def test_nothing_is_charged_for_what_cannot_be_done(codes):
    accountant = _accountant()
    with pytest.raises(InputError, match="meant for no table"):
        _privelet(codes, "1e-15", ForbiddenSource(), accountant)
    with pytest.raises(LocalError, match="domain sizes"):
        _privelet(codes.select([0, 1]), 1, ForbiddenSource(), accountant)
    assert accountant.charges == ()


def test_a_release_says_whether_its_noise_was_private(codes):
    assert not _release(codes).private
    assert _privelet(codes, 1, OsRandomSource()).private


# --- the file -------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["basic", "privelet", "privelet+", "privelet*"])
def test_a_saved_release_answers_the_same(codes, tmp_path, method):
    release = _release(codes, method, epsilon="1/3")
    save(release, tmp_path / "r.npz")
    again = load(tmp_path / "r.npz")
    assert np.array_equal(again.cells, release.cells)
    assert (again.rows, again.private, again.schema) == (ROWS, False, SCHEMA)
    assert (again.plan.method, again.plan.epsilon) == (method, Fraction(1, 3))
    queries = ["", "age in 5..60 and sex = Male", "country in Europe"]
    assert np.array_equal(again.counts(queries).values, release.counts(queries).values)
    with np.load(tmp_path / "r.npz") as archive:  # numpy reads it as well
        assert archive["cells"].shape == release.cells.shape


def test_saving_twice_gives_the_same_bytes_and_leaves_nothing_behind(codes, tmp_path):
    release = _release(codes)
    save(release, tmp_path / "a.npz")
    save(release, tmp_path / "b.npz")
    save(release, tmp_path / "b.npz")
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.npz", "b.npz"]


def test_a_failed_save_keeps_the_old_file(codes, tmp_path, monkeypatch):
    release = _release(codes)
    target = tmp_path / "r.npz"
    save(release, target)
    before = target.read_bytes()

    def full_disk(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("numpy.lib.format.write_array", full_disk)
    with pytest.raises(InputError, match="cannot be written: No space"):
        save(_release(codes, seed=2), target)
    assert target.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["r.npz"]


def test_a_folder_that_is_not_there_is_named(codes, tmp_path):
    with pytest.raises(InputError, match=r"nowhere.*cannot be written: No such file"):
        save(_release(codes), tmp_path / "nowhere" / "r.npz")


def test_a_file_cut_short_or_damaged_anywhere_is_refused(codes, tmp_path):
    path = tmp_path / "r.npz"
    save(_release(codes), path)
    whole = path.read_bytes()
    for length in (0, 10, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(InputError, match=r"r\.npz"):
            load(path)
    for place in (60, 300, 3000, len(whole) // 2, len(whole) - 700):
        damaged = bytearray(whole)
        damaged[place] ^= 0x10
        path.write_bytes(damaged)
        with pytest.raises(InputError, match=r"r\.npz"):
            load(path)


def test_a_missing_file_and_a_foreign_file_are_refused(tmp_path):
    with pytest.raises(InputError, match="No such file"):
        load(tmp_path / "nothing.npz")
    np.savez(tmp_path / "other.npz", cells=np.zeros(3))
    with pytest.raises(InputError, match="not a release"):
        load(tmp_path / "other.npz")


def _rewrite(path, cells=None, **changes):
    with zipfile.ZipFile(path) as archive:
        about = json.loads(archive.read("release.json"))
        old = archive.read("cells.npy")
    about.update(changes)
    about = {key: value for key, value in about.items() if value is not None}
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("release.json", json.dumps(about))
        with archive.open("cells.npy", "w") as member:
            if cells is None:
                member.write(old)
            else:
                np.lib.format.write_array(member, cells, allow_pickle=True)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"format": "cake"}, "not a parley range release"),
        ({"version": 2}, "version 2 of the format; this program reads 1"),
        ({"version": None}, "version None"),
        ({"method": "magic"}, "unknown method 'magic'"),
        ({"epsilon": "zero"}, "'epsilon'"),
        ({"epsilon": "-1"}, "above 0"),
        ({"epsilon": None}, "'epsilon' .* missing"),
        ({"epsilon": "2"}, "'noise_scale' .* does not follow"),
        ({"noise_scale": None}, "'noise_scale' .* missing"),
        ({"rows": "many"}, "'rows'"),
        ({"private": 1}, "'private'"),
        ({"schema": "["}, "schema"),
        ({"untransformed": ["agee"]}, "agee"),
        ({"untransformed": ["age"]}, "'noise_scale'"),
        ({"cells": np.zeros((2, 5, 7))}, "has shape"),
        ({"cells": np.zeros((2, 5, 201), dtype=np.float32)}, "has shape"),
        ({"cells": np.full((2, 5, 201), np.nan)}, "not a number"),
        ({"cells": np.array([object()])}, "has shape"),
    ],
)
def test_files_that_contradict_themselves_are_refused(codes, tmp_path, changes, words):
    path = tmp_path / "r.npz"
    save(_release(codes), path)
    assert load(path).cells.shape == (2, 5, 201)
    _rewrite(path, **changes)
    with pytest.raises(InputError, match=words):
        load(path)
