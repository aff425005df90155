"""`parley attack`: its sentences, its page, and that they are not private."""

import json

import pytest

from parley.simulation.population import make_population


@pytest.fixture
def released(parley, study, tmp_path):
    """A release, the rows that it is of, and rows that were held back."""
    people = make_population(1000, seed=3)
    people.iloc[:500].to_csv(tmp_path / "rows.csv", index=False)
    people.iloc[500:].to_csv(tmp_path / "rest.csv", index=False)
    done = parley("synthesize", "rows.csv", "--schema", study / "schema.toml", "--epsilon", 2,
                  "--out", "release")  # fmt: skip
    assert done.code == 0, done.err
    return tmp_path


WORDS = ["attack", "release", "--rows", "rows.csv", "--held-back", "rest.csv"]


def test_every_attack_is_one_sentence_and_the_reader_is_warned(parley, released):
    done = parley(*WORDS)
    assert done.code == 0, done.err
    assert "NOT PRIVATE" in done.err
    lines = done.out.splitlines()
    kinds = ("membership, closest", "attribute inference of", "singling out", "face privacy")
    for kind in kinds:
        assert [line for line in lines if line.startswith(kind)], kind
    assert "epsilon 2 allows a difference of 76.2%" in done.out


def test_scripts_have_the_same_as_json(parley, released):
    done = parley(*WORDS, "--json")
    assert done.code == 0, done.err
    assert (done.json["private"], done.json["epsilon"]) == (False, 2.0)
    assert done.json["verdict"] in ("nothing", "within")
    assert done.json["face_privacy"]["rows_of_the_study"]["trials"] == 500


def test_a_release_whose_rows_were_replaced_by_real_ones_is_convicted(parley, released):
    (released / "release" / "synthetic.csv").write_bytes((released / "rows.csv").read_bytes())
    done = parley(*WORDS, "--json")
    assert done.json["verdict"] == "beyond"


def test_the_page_is_written_outside_the_release_only(parley, released):
    assert parley(*WORDS, "--html", "release/page.html").code == 4
    assert parley(*WORDS, "--html", "page.html").code == 0
    assert "NOT FOR PUBLICATION" in (released / "page.html").read_text()
    again = parley(*WORDS, "--html", "page.html")
    assert again.code == 3
    assert "--overwrite" in again.err


def test_a_release_that_promises_nothing_is_said_to(parley, released):
    statement = released / "release" / "privacy.json"
    content = json.loads(statement.read_text())
    statement.write_text(json.dumps({**content, "private": False}))
    done = parley(*WORDS, "--json")
    assert done.json["epsilon"] is None
    statement.write_text(json.dumps({"private": True}))
    refused = parley(*WORDS)
    assert refused.code == 3
    assert "states no epsilon" in refused.err
