"""Who signs a study: the key that is named, else the curator's, else the remedy is said."""

import json
from pathlib import Path

import pytest

from common.crypto.identities.identity import Identity
from common.crypto.key_files import save_identity
from common.errors import InputError
from common.privacy.randomness import SeededRandomSource
from parley.cli.commands.study_signing import signed, tell_offered
from tests.harness.run_script import random_tables, study_of

STUDY = study_of(random_tables((2, 3), [20, 30]))
SIGNER = Identity.generate(SeededRandomSource("signer"))


@pytest.fixture
def key(tmp_path):
    (tmp_path / "keys").mkdir()
    save_identity(tmp_path / "keys" / "identity.key", SIGNER)
    return tmp_path / "keys" / "identity.key"


def test_the_key_that_is_named_signs(key):
    made = signed(STUDY, None, key)
    assert made.signer == SIGNER.public.fingerprint
    assert made.digest == STUDY.digest


def test_else_the_curators_signs_as_its_settings_say(key, tmp_path):
    config = tmp_path / "curator.toml"
    folders = {"folder": tmp_path, "keys": key.parent, "releases": tmp_path}
    config.write_text("".join(f'{name} = "{path}"\n' for name, path in folders.items()))
    assert signed(STUDY, config, None).signer == SIGNER.public.fingerprint


def test_without_either_the_three_remedies_are_said(tmp_path):
    with pytest.raises(InputError, match=r"--config.*--signer.*--unsigned"):
        signed(STUDY, tmp_path / "absent.toml", None)


def test_what_was_written_is_told_to_people_and_to_scripts(capsys):
    tell_offered(STUDY, Path("study.toml"), as_json=False)
    assert capsys.readouterr().out == f"digest {STUDY.digest.hex()}\nsigner none\n"
    tell_offered(STUDY.signed_by(SIGNER), Path("study.toml"), as_json=True, changes=["epsilon"])
    assert json.loads(capsys.readouterr().out) == {
        "study": STUDY.digest.hex(),
        "name": STUDY.name,
        "signer": SIGNER.public.fingerprint,
        "file": "study.toml",
        "changes": ["epsilon"],
    }
