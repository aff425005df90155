"""`parley evaluate`: its figures, its page, and that they are not private."""

import pytest


def test_the_command_prints_the_averages_scripts_rely_on(parley, study):
    data = study / "data.csv"
    done = parley("evaluate", data, data, "--schema", study / "schema.toml", "--json")
    assert done.code == 0
    assert [done.json[key] for key in ("tvd_1", "tvd_2", "tvd_3")] == [0.0, 0.0, 0.0]
    assert set(done.json["classification"]) == {
        "sex",
        "smoker",
        "chronic_illness",
        "marital_status",
    }


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_whoever_reads_the_figures_is_told_that_they_are_not_private(parley, small, form):
    small()
    done = parley("evaluate", "data.csv", "data.csv", "--schema", "schema.toml", *form)
    assert done.code == 0
    assert "NOT PRIVATE" in done.err
    assert not form or done.json["private"] is False


def test_the_command_writes_a_page_and_replaces_none(parley, study, tmp_path):
    words = ["evaluate", study / "data.csv", study / "data.csv", "--schema", study / "schema.toml",
             "--target", "sex", "--html", "page.html"]  # fmt: skip
    done = parley(*words)
    assert done.code == 0
    assert "3-way marginals: average distance 0.0000" in done.out
    assert "<!doctype html>" in (tmp_path / "page.html").read_text()
    again = parley(*words)
    assert again.code == 3
    assert "--overwrite" in again.err


def test_the_page_shows_real_and_synthetic_and_says_that_it_is_private(parley, small):
    folder = small()
    done = parley("evaluate", "data.csv", "data.csv", "--schema", "schema.toml", "--html", "p.html")
    assert done.code == 0
    page = (folder / "p.html").read_text()
    assert page.index("NOT FOR PUBLICATION") < page.index("Distances of counts")
    assert page.count("Distribution of ") == 2 * 2  # a name and a title each
    assert ">real</text>" in page
    assert ">synthetic</text>" in page


def test_the_page_is_not_written_into_a_release(parley, small):
    folder = small()
    (folder / "release" / "more").mkdir(parents=True)
    (folder / "release" / "privacy.json").write_text("{}")
    for place in ("release/p.html", "release/more/p.html"):
        done = parley(
            "evaluate", "data.csv", "data.csv", "--schema", "schema.toml", "--html", place
        )
        assert done.code == 4
        assert "outside" in done.err
        assert not (folder / place).exists()


def test_a_release_folder_is_compared_with_a_table_of_another_delimiter(parley, small):
    """A release is written with commas, whatever the owner's table has between its cells."""
    small(data="age;sex\n" + "20;Male\n30;Female\n" * 20)
    assert parley("synthesize", "data.csv", "--schema", "schema.toml", "--epsilon", 1,
                  "--out", "release").code == 0  # fmt: skip
    for named in ([], ["--delimiter", ";"]):
        words = ["evaluate", "data.csv", "release", "--schema", "schema.toml", *named]
        done = parley(*words)
        assert done.code == 0, done.err
        assert "0 is perfect, 1 is disjoint" in done.out
    refused = parley("evaluate", "data.csv", ".", "--schema", "schema.toml")
    assert refused.code == 3
    assert "A release has plain files only" in refused.err
