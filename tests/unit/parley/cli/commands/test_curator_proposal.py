"""Studies that are written down, signed and offered, or made of earlier ones."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from common.crypto.identities.identity import Identity
from common.crypto.key_files import load_public_identity, save_identity
from common.errors import InputError
from common.privacy.randomness import SeededRandomSource
from common.study.document import Study
from parley.cli.commands.curator_proposal import Proposer, _written
from parley.cli.result import show
from tests.harness.deployed_folder import HUB
from tests.harness.run_script import random_tables, study_of

STUDY = study_of(random_tables((2, 3), [20, 30]))
SIGNER = Identity.generate(SeededRandomSource("signer"))


@pytest.fixture
def key(tmp_path):
    (tmp_path / "keys").mkdir()
    save_identity(tmp_path / "keys" / "identity.key", SIGNER)
    return tmp_path / "keys" / "identity.key"


def test_the_key_that_is_named_signs(key):
    made = Proposer(signer=key).signed(STUDY)
    assert made.signer == SIGNER.public.fingerprint
    assert made.digest == STUDY.digest


def test_else_the_curators_signs_as_its_settings_say(key, tmp_path):
    config = tmp_path / "curator.toml"
    folders = {"folder": tmp_path, "keys": key.parent, "releases": tmp_path}
    config.write_text("".join(f'{name} = "{path}"\n' for name, path in folders.items()))
    assert Proposer(config).signed(STUDY).signer == SIGNER.public.fingerprint


def test_without_either_the_three_remedies_are_said(tmp_path):
    with pytest.raises(InputError, match=r"--config.*--signer.*--unsigned"):
        Proposer(tmp_path / "absent.toml").signed(STUDY)


def test_what_was_written_is_told_to_people_and_to_scripts(capsys):
    show(_written(STUDY, Path("study.toml")), as_json=False)
    assert capsys.readouterr().out == f"digest {STUDY.digest.hex()}\nsigner none\n"
    made = STUDY.signed_by(SIGNER)
    changed = _written(made, Path("study.toml"), ["epsilon"])
    show(changed, as_json=True)
    assert json.loads(capsys.readouterr().out) == {
        "study": STUDY.digest.hex(),
        "name": STUDY.name,
        "signer": SIGNER.public.fingerprint,
        "file": "study.toml",
        "changes": ["epsilon"],
    }


def changes(done):
    return [line.removeprefix("change ") for line in done.out.splitlines() if "change " in line]


@pytest.fixture
def three(parley, place):
    """A study of three owners, offered."""
    place.add("south")
    words = place.words(name="health 2026")
    assert parley(*words, "--party", "south:40:south/keys/identity.pub").code == 0
    assert parley("curator", "study", "add", "study.toml", *HUB).code == 0
    return Study.load(place.folder / "study.toml")


def test_next_years_study_has_the_next_year_and_the_same_terms(parley, place, three):
    done = parley("curator", "study", "renew", "health 2026", "--out", "next.toml", *HUB)
    assert done.code == 0, done.err
    made = Study.load(place.folder / "next.toml")
    assert changes(done) == ["name: health 2026 -> health 2027"]
    assert (made.members, made.schema, made.epsilon) == (three.members, three.schema, three.epsilon)
    assert made.digest != three.digest, "no approval of the earlier one counts for it"
    assert made.signer == three.signer
    assert parley("curator", "study", "add", "next.toml", *HUB).code == 0


def test_every_change_of_a_renewed_study_is_shown(parley, place, three):
    place.add("west")
    text = (place.folder / "schema.toml").read_text()
    (place.folder / "other.toml").write_text(text.replace('"Male"]', '"Male", "Other"]'))
    done = parley(
        "curator", "study", "renew", "study.toml", "--out", "next.toml", "--name", "again",
        "--rows", "north:55", "--without", "south", "--party", "west:60:west/keys/identity.pub",
        "--schema", "other.toml", "--epsilon", "1/2", *HUB,
    )  # fmt: skip
    assert done.code == 0, done.err
    assert changes(done) == [
        "name: health 2026 -> again", "epsilon: 1 -> 1/2", "party south: takes no part any more",
        "party north: 40 -> 55 rows", "party west: new, 60 rows",
        "column sex: other values or bins",
    ]  # fmt: skip
    made = Study.load(place.folder / "next.toml")
    assert [(m.name, m.rows) for m in made.members] == [("north", 55), ("east", 40), ("west", 60)]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--rows", "north"), "expected NAME:ROWS"),
        (("--rows", "west:5"), "it has no party 'west'"),
        (("--without", "west"), "it has no party 'west'"),
    ],
)
def test_a_mistake_in_a_renewal_writes_nothing(parley, place, three, words, said):
    done = parley("curator", "study", "renew", "study.toml", "--out", "next.toml", *words, *HUB)
    assert done.code == 3
    assert said in done.err
    assert not (place.folder / "next.toml").exists()


def test_a_study_is_reformed_without_an_owner_once_it_is_over(parley, place, three):
    reform = ("curator", "study", "reform", "health 2026", "--without", "south", "--out", "n.toml")
    refused = parley(*reform, *HUB)
    assert refused.code == 3
    assert "it is not over (waiting for parties). End it first" in refused.err
    settings = ("curator", "study", "abort", "health 2026", "--reason", "south is gone")
    assert parley(*settings, *HUB).code == 0
    assert parley("curator", "study", "reform", "study.toml", *reform[4:], *HUB).code == 0
    made = Study.load(place.folder / "n.toml")
    assert [member.name for member in made.members] == ["north", "east"]
    assert made.name == "health 2026, without south"


def test_an_owner_cannot_be_declared_missing_where_all_are_needed(parley, place, three):
    done = parley("curator", "study", "missing", "health 2026", "south", *HUB)
    assert done.code == 3
    assert "it needs all of its owners, so none can be declared missing" in done.err
    assert "reform --without south" in done.err
    place.add("west")
    others = [
        w for name in ("south", "west") for w in ("--party", f"{name}:40:{name}/keys/identity.pub")
    ]
    words = place.words(name="with gaps", out="gaps.toml")
    again = parley(*words, "--may-miss", "1", *others)
    assert again.code == 0, again.err
    assert parley("curator", "study", "add", "gaps.toml", *HUB).code == 0
    early = parley("curator", "study", "missing", "with gaps", "south", *HUB)
    assert "it does not run (waiting for parties), so no owner is missing" in early.err
    assert "has no party 'x'" in parley("curator", "study", "missing", "health 2026", "x", *HUB).err


def test_a_new_study_pins_the_curator_whose_settings_are_named(parley, place, three):
    own = load_public_identity(place.folder / "hub" / "keys" / "identity.pub").fingerprint
    assert three.curator == own
    words = ["renew", "health 2026", "--out", "next.toml"]
    assert parley("curator", "study", *words, *HUB).code == 0
    assert Study.load(place.folder / "next.toml").curator == own


def test_a_study_that_pins_another_curator_is_not_offered_here(parley, place, three):
    other = replace(three, curator=SIGNER.public.fingerprint, signature=None)
    (place.folder / "other.toml").write_text(other.to_toml())
    done = parley("curator", "study", "add", "other.toml", *HUB)
    assert done.code == 3
    assert f"it pins curator {SIGNER.public.fingerprint}, and this curator is" in done.err
    without = replace(three, curator="", signature=None)
    (place.folder / "without.toml").write_text(without.to_toml())
    done = parley("curator", "study", "add", "without.toml", *HUB)
    assert done.code == 0
    assert f'Write curator = "{three.curator}"' in done.err


def test_a_study_that_no_curators_settings_made_pins_none_and_says_so(parley, place, key):
    words = [w for w in place.words() if w not in ("--config", "hub/curator.toml")]
    done = parley(*words, "--signer", str(key))
    assert done.code == 0, done.err
    assert Study.load(place.folder / "study.toml").curator == ""
    assert "the study pins no curator" in done.err


def test_a_study_of_no_synthetic_rows_is_refused(parley, place):
    refused = parley(*place.words(), "--rows", "0")
    assert refused.code == 3
    assert "--rows 0: ask for at least one row" in refused.err
    assert not (place.folder / "study.toml").exists()
