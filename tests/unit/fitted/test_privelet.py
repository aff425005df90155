"""What Privelet releases: its counts, its rows and its file."""

import zipfile

import pytest

import parley
from common.errors import InputError
from common.release.folder import new_folder
from common.report.writing import write_release
from tests.harness.people import SMOKERS as SCHEMA
from tests.harness.people import smokers as table_of


def test_a_range_release_survives_a_file(tmp_path):
    fitted = parley.Privelet(epsilon=1.0).fit(table_of(500), SCHEMA)
    fitted.save(tmp_path / "r.zip")
    again = parley.load(tmp_path / "r.zip")
    assert again.privacy == fitted.privacy
    assert again.count("sex = F") == fitted.count("sex = F")
    assert list(again.sample(5).columns) == ["sex", "age", "smokes"]


def test_a_range_count_is_near_the_truth_by_its_own_deviation():
    table = table_of(2_000, seed=3)
    fitted = parley.Privelet(epsilon=2.0, method="privelet+").fit(table, SCHEMA)
    found = fitted.count("age in 20..39 and sex = F")
    truth = int((table["age"].between(20, 39) & (table["sex"] == "F")).sum())
    assert abs(found.value - truth) < 20 * found.standard_deviation
    assert len(fitted.counts(["sex = F", "sex = M"]).values) == 2


def test_rows_of_a_range_release_follow_its_counts():
    table = table_of(4_000, seed=4)
    sample = parley.Privelet(epsilon=100).fit(table, SCHEMA).sample()
    assert len(sample) == 4_000
    assert sample["smokes"].notna().mean() > 0.95
    assert abs((sample["sex"] == "F").mean() - (table["sex"] == "F").mean()) < 0.06  # > 5 sd


def test_a_range_release_of_nothing_but_noise_still_gives_rows():
    sample = parley.Privelet(epsilon="1e-6").fit(table_of(20), SCHEMA).sample(10)
    assert len(sample) == 10


def test_a_release_in_a_notebook_says_its_cells():
    assert "48 cells" in parley.Privelet().fit(table_of(50), SCHEMA)._repr_html_()


def test_rows_given_a_condition_all_satisfy_it_and_an_impossible_one_is_refused():
    fitted = parley.Privelet(epsilon=50).fit(table_of(2_000), SCHEMA)
    rows = fitted.sample(300, where="age in 50..79 and sex = F")
    assert rows["age"].between(50, 79).all()
    assert (rows["sex"] == "F").all()
    with pytest.raises(InputError, match="no row of this model satisfies it"):
        fitted.sample(3, where="age in 0..9 and age in 50..79")


def test_no_row_breaks_a_rule_whatever_the_noise():
    ruled = parley.Schema.from_toml(
        SCHEMA.to_toml() + '\n[[rule]]\nwhen = "age < 40"\nthen = "smokes = false"\n'
    )
    table = table_of(300).query("smokes or age < 40")
    sample = parley.Privelet(epsilon="0.01").fit(table, ruled).sample(500)
    assert not (sample["smokes"].fillna(value=True) & (sample["age"] < 40)).any()


def test_a_file_without_its_statement_is_refused(tmp_path):
    path = tmp_path / "r.zip"
    parley.Privelet(epsilon=1.0).fit(table_of(50), SCHEMA).save(path)
    with zipfile.ZipFile(path) as whole, zipfile.ZipFile(tmp_path / "cut.zip", "w") as cut:
        for name in whole.namelist():
            if name != "parley.json":
                cut.writestr(name, whole.read(name))
    with pytest.raises(InputError, match=r"cut\.zip"):
        parley.load(tmp_path / "cut.zip")


def test_the_range_counts_of_a_release_are_named_if_they_are_damaged(tmp_path):
    fitted = parley.Privelet(epsilon=1.0).fit(table_of(50), SCHEMA)
    with new_folder(tmp_path / "release", overwrite=False) as folder:
        write_release(folder, fitted)
    ranges = tmp_path / "release" / "ranges.zip"
    ranges.write_bytes(ranges.read_bytes()[:-30])
    with pytest.raises(InputError, match=r"release: ranges\.zip: not a release, or damaged"):
        parley.load(tmp_path / "release")
