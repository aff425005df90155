"""The signature under a study and the approvals of it: each holds for one digest only."""

from dataclasses import replace

import pytest

from common.crypto.identities.identity import Identity
from common.errors import InputError
from common.privacy.randomness import SeededRandomSource
from common.study.document import Study
from common.study.ids import StudyId
from common.study.signatures import StudySignature, approval_statement
from tests.harness.run_script import random_tables, study_of

PLAIN = study_of(random_tables((2, 3), [20, 30]))


def study(**changes):
    return replace(PLAIN, **changes)


SIGNER = Identity.generate(SeededRandomSource("who proposes"))


def test_a_signature_travels_in_the_text_and_is_not_part_of_the_digest():
    plain = study()
    signed = plain.signed_by(SIGNER)
    assert (plain.signer, signed.signer) == (None, SIGNER.public.fingerprint)
    again = Study.from_toml(signed.to_toml())
    assert again.signer == SIGNER.public.fingerprint
    assert again.digest == signed.digest == plain.digest


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('epsilon = "', 'epsilon = "1', "did not sign this study"),
        ('value = "', 'value = "?', "base64"),
        ('value = "', 'worth = "', "identity and value"),
        ('[signature]\nidentity = "', '[signature]\nidentity = "AAAA', "identity"),
    ],
)
def test_a_study_that_was_changed_after_it_was_signed_is_refused(old, new, words):
    text = study().signed_by(SIGNER).to_toml()
    assert old in text
    with pytest.raises(InputError, match=words):
        Study.from_toml(text.replace(old, new, 1))


def test_a_signature_of_another_study_is_refused():
    signature = study(name="another").signed_by(SIGNER).signature
    with pytest.raises(InputError, match="did not sign this study"):
        study(signature=signature)


def test_a_signature_over_a_digest_is_no_signature_over_its_bytes_alone():
    """What is signed has a context: a signature of another kind cannot stand under a study."""
    plain = study()
    other = StudySignature(identity=SIGNER.public, value=SIGNER.sign(plain.digest))
    with pytest.raises(InputError, match=f"{SIGNER.public.fingerprint} did not sign this study"):
        other.require(plain.digest)
    StudySignature.make(plain.digest, SIGNER).require(plain.digest)


@pytest.mark.parametrize("table", [5, {}, {"identity": "AA=="}, {"identity": 1, "value": 2}])
def test_a_table_that_is_no_signature_is_refused(table):
    with pytest.raises(InputError, match="signature: "):
        StudySignature.from_table(table)


OWNER = Identity.generate(SeededRandomSource("owner"))
OTHER = Identity.generate(SeededRandomSource("other"))
STUDY, ANOTHER = StudyId(bytes(32)), StudyId(bytes(31) + b"\1")


def test_an_approval_is_the_pinned_identitys_for_this_study_and_party_only():
    signature = OWNER.sign(approval_statement(study=STUDY, party="north"))
    assert OWNER.public.signed(approval_statement(study=STUDY, party="north"), signature=signature)
    for study, party, identity in (
        (ANOTHER, "north", OWNER.public),
        (STUDY, "south", OWNER.public),
        (STUDY, "north", OTHER.public),
    ):
        statement = approval_statement(study=study, party=party)
        assert not identity.signed(statement, signature=signature)


def test_no_two_approvals_have_the_same_bytes_and_none_is_a_bare_digest():
    """A digest has a fixed length, so a name cannot reach into it."""
    texts = {
        approval_statement(study=s, party=p) for s in (STUDY, ANOTHER) for p in ("a", "ab", "b")
    }
    assert len(texts) == 6
    statement = approval_statement(study=STUDY, party="")
    assert not OWNER.public.signed(statement, signature=OWNER.sign(STUDY))
