import pytest

from common.crypto.framing import frame
from common.crypto.identities.envelope import (
    EnvelopeError,
    EnvelopeRoute,
    Mailbox,
    Refusal,
    seal,
    unseal,
)
from common.crypto.identities.identity import Identity, LocalParty
from common.errors import LocalError, RemoteProtocolError
from common.privacy.randomness import SeededRandomSource

STUDY = bytes(range(32))
NAMES = ("ada", "ben", "cyd")
PEOPLE = {name: Identity.generate(SeededRandomSource(name)) for name in NAMES}
ROSTER = {name: person.public for name, person in PEOPLE.items()}


def mailbox(name, *, study=STUDY, step=1):
    member = LocalParty(name=name, identity=PEOPLE[name], roster=ROSTER)
    return Mailbox(member, study=study, step=step)


def refusal(box, sender, envelope, topic="ring"):
    with pytest.raises(EnvelopeError) as caught:
        box.open(sender, topic=topic, envelope=envelope)
    assert isinstance(caught.value, RemoteProtocolError)
    return caught.value.refusal


def test_an_envelope_arrives():
    ada, ben = mailbox("ada"), mailbox("ben")
    for words in (b"first", b"", b"third" * 10_000):
        assert (
            ben.open("ada", topic="ring", envelope=ada.seal("ben", topic="ring", plaintext=words))
            == words
        )


def test_a_replayed_envelope_is_refused_and_the_next_one_still_opens():
    ada, ben = mailbox("ada"), mailbox("ben")
    first, second = (ada.seal("ben", topic="ring", plaintext=words) for words in (b"1", b"2"))
    ben.open("ada", topic="ring", envelope=first)
    assert refusal(ben, "ada", first) is Refusal.REPLAYED
    assert ben.open("ada", topic="ring", envelope=second) == b"2"


def test_an_envelope_out_of_order_is_refused():
    ada, ben = mailbox("ada"), mailbox("ben")
    first, second = (ada.seal("ben", topic="ring", plaintext=words) for words in (b"1", b"2"))
    assert refusal(ben, "ada", second) is Refusal.REORDERED
    assert ben.open("ada", topic="ring", envelope=first) == b"1"


def test_a_truncated_envelope_is_refused_wherever_it_is_cut():
    envelope = mailbox("ada").seal("ben", topic="ring", plaintext=b"words")
    for length in range(0, len(envelope), 7):
        assert refusal(mailbox("ben"), "ada", envelope[:length]) in (
            Refusal.MALFORMED,
            Refusal.FORGED,
        )
    assert refusal(mailbox("ben"), "ada", envelope[:-1]) is Refusal.FORGED


def test_every_changed_byte_is_refused():
    envelope = mailbox("ada").seal("ben", topic="ring", plaintext=b"words")
    for position in range(0, len(envelope), 5):
        changed = bytearray(envelope)
        changed[position] ^= 1
        refusal(mailbox("ben"), "ada", bytes(changed))


def test_an_envelope_to_another_party_is_refused():
    envelope = mailbox("ada").seal("cyd", topic="ring", plaintext=b"words")
    assert refusal(mailbox("ben"), "ada", envelope) is Refusal.MISDIRECTED


def test_an_envelope_handed_over_under_another_senders_name_is_refused():
    envelope = mailbox("ada").seal("ben", topic="ring", plaintext=b"words")
    assert refusal(mailbox("ben"), "cyd", envelope) is Refusal.MISDIRECTED


def test_an_envelope_of_another_study_step_or_topic_is_refused():
    other = mailbox("ada", study=bytes(32)).seal("ben", topic="ring", plaintext=b"words")
    assert refusal(mailbox("ben"), "ada", other) is Refusal.FOREIGN_STUDY
    other = mailbox("ada", step=2).seal("ben", topic="ring", plaintext=b"words")
    assert refusal(mailbox("ben"), "ada", other) is Refusal.WRONG_STEP
    other = mailbox("ada").seal("ben", topic="permutation", plaintext=b"words")
    assert refusal(mailbox("ben"), "ada", other) is Refusal.WRONG_STEP


def route(**changes):
    fields = {"study": STUDY, "step": 1, "topic": "ring", "sequence": 0}
    return EnvelopeRoute(**{**fields, "sender": "ada", "recipient": "ben", **changes})


def test_words_signed_by_somebody_else_are_refused():
    forged = seal(b"words", route(), sender=PEOPLE["cyd"], recipient=ROSTER["ben"])
    assert refusal(mailbox("ben"), "ada", forged) is Refusal.FORGED


def test_sealed_words_cannot_be_taken_over_by_another_signer():
    """Cyd strips Ada's signature, and signs Ada's sealed words for its own route."""
    original = mailbox("ada").seal("ben", topic="ring", plaintext=b"words")
    sealed = original[3 + len(route().header()) + 64 :]
    header = route(sender="cyd").header()
    context = frame(("parley envelope 1", header, ROSTER["cyd"].encoded, ROSTER["ben"].encoded))
    signature = PEOPLE["cyd"].sign(frame((context, sealed)))
    taken = b"\x01" + len(header).to_bytes(2, "big") + header + signature + sealed
    assert refusal(mailbox("ben"), "cyd", taken) is Refusal.UNREADABLE


def test_a_header_moved_to_another_place_is_refused():
    """The curator rewrites the clear header of an envelope from step 1 to pass for step 2."""
    original = mailbox("ada").seal("ben", topic="ring", plaintext=b"words")
    old, new = route().header(), route(step=2).header()
    moved = original[:1] + len(new).to_bytes(2, "big") + new + original[3 + len(old) :]
    assert refusal(mailbox("ben", step=2), "ada", moved) is Refusal.FORGED


def test_only_the_recipient_can_open():
    envelope = mailbox("ada").seal("ben", topic="ring", plaintext=b"words")
    assert b"words" not in envelope
    with pytest.raises(EnvelopeError):
        unseal(envelope, route(), sender=ROSTER["ada"], recipient=PEOPLE["cyd"])


def test_a_member_whose_identity_the_study_does_not_pin_is_refused():
    with pytest.raises(LocalError, match="pins another identity"):
        LocalParty(name="ada", identity=PEOPLE["ben"], roster=ROSTER)


def test_writing_to_a_stranger_is_refused():
    with pytest.raises(LocalError, match="not in the study's roster"):
        mailbox("ada").seal("dan", topic="ring", plaintext=b"words")
