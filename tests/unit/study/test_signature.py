"""The signature under a study: over its digest, in its text, refused when either was changed."""

from dataclasses import replace

import pytest

from common.crypto.identities.identity import Identity
from common.errors import InputError
from common.privacy.randomness import SeededRandomSource
from common.study.document import Study
from common.study.signature import StudySignature
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
