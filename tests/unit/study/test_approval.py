"""An approval holds for one study and one party, and can be taken for nothing else."""

import pytest
from cryptography.exceptions import InvalidSignature

from common.crypto.identities.identity import Identity
from common.privacy.randomness import SeededRandomSource
from common.study.approval import require, statement
from common.study.ids import StudyId

OWNER = Identity.generate(SeededRandomSource("owner"))
OTHER = Identity.generate(SeededRandomSource("other"))
STUDY, ANOTHER = StudyId(bytes(32)), StudyId(bytes(31) + b"\1")


def test_an_approval_is_the_pinned_identitys_for_this_study_and_party_only():
    signature = OWNER.sign(statement(study=STUDY, party="north"))
    require(study=STUDY, party="north", signature=signature, identity=OWNER.public)
    for study, party, identity in (
        (ANOTHER, "north", OWNER.public),
        (STUDY, "south", OWNER.public),
        (STUDY, "north", OTHER.public),
    ):
        with pytest.raises(InvalidSignature):
            require(study=study, party=party, signature=signature, identity=identity)


def test_no_two_approvals_have_the_same_bytes_and_none_is_a_bare_digest():
    """A digest has a fixed length, so a name cannot reach into it."""
    texts = {statement(study=s, party=p) for s in (STUDY, ANOTHER) for p in ("a", "ab", "b")}
    assert len(texts) == 6
    with pytest.raises(InvalidSignature):
        require(study=STUDY, party="", signature=OWNER.sign(STUDY), identity=OWNER.public)
