"""A small sealed release."""

import os

import pytest

from common.crypto.identities.identity import Identity
from common.privacy.randomness import SeededRandomSource
from common.release.archive import finish
from common.release.contents import open_release
from common.release.integrity import check_bytes
from common.release.manifest import MethodVersion, Signer, SignerRole

CURATOR = Signer(
    role=SignerRole.CURATOR, name="hub", identity=Identity.generate(SeededRandomSource("hub"))
)
NORTH = Signer(
    role=SignerRole.PARTY, name="north", identity=Identity.generate(SeededRandomSource("north"))
)
STUDY = bytes(range(32))
METHOD = MethodVersion("subn+", 1)


@pytest.fixture
def folder(tmp_path):
    """A sealed folder that looks like a release as far as bytes go."""
    place = tmp_path / "release"
    place.mkdir()
    (place / "synthetic.csv").write_text("a,b\n1,2\n" * 1000)
    (place / "privacy.json").write_text("{}\n")
    (place / "report.html").write_text("<p>\n")
    (place / "synthetic.parquet").write_bytes(os.urandom(5000))
    finish(place, study=STUDY, method=METHOD, date="2026-11-17", signer=CURATOR)
    return place


def problems(path):
    with open_release(path) as contents:
        return {(each.file, each.kind) for each in check_bytes(contents).problems}
