"""`parley party countersign`: what a party signs, and what it does not."""

from dataclasses import replace
from types import SimpleNamespace

from common.crypto.identities.identity import Identity
from common.privacy.randomness import SeededRandomSource
from common.release.signatures import Signer, SignerRole
from common.release.verify import missing_parties
from tests.harness.deployed_folder import NORTH, DeployedFolder
from tests.unit.parley.cli.commands.conftest import append, sign_again


def test_a_party_does_not_countersign_another_report_or_another_version(parley, made, copies):
    DeployedFolder(copies)
    words = ("party", "countersign", "several", *NORTH)
    sign_again(copies / "several", made, version="0.0.9")
    assert parley(*words).code == 4
    append(copies / "several" / "report.html", "<script>")
    sign_again(copies / "several", made)
    done = parley(*words)
    assert done.code == 3
    assert "report.html: is not what the table, the model and the statement imply" in done.err
    assert len(list((copies / "several" / "signatures").iterdir())) == 1


def test_a_countersignature_of_somebody_outside_the_study_is_refused(parley, copies):
    stranger = Signer(
        role=SignerRole.PARTY, name="party 1", identity=Identity.generate(SeededRandomSource("x"))
    )
    signature = stranger.sign((copies / "several" / "manifest.json").read_bytes())
    (copies / "several" / signature.file).write_bytes(signature.to_bytes())
    done = parley("verify", "several")
    assert done.code == 3
    assert "pins no such identity for a party 'party 1'" in done.err


def test_a_party_that_signs_as_something_else_has_not_countersigned(tmp_path):
    party = Identity.generate(SeededRandomSource("party"))
    agreed = SimpleNamespace(members=[SimpleNamespace(name="north", identity=party.public)])
    signature = Signer(role=SignerRole.CURATOR, name="hub", identity=party).sign(b"manifest")
    for role, missing in ((SignerRole.CURATOR, 1), (SignerRole.PARTY, 0)):
        signatures = (replace(signature, role=role),)
        assert len(missing_parties(agreed, signatures)) == missing
