"""A transfer gives the receiver one label of each bit, and the sender none of the bits."""

import numpy as np
import pytest

from common.crypto.two_party.garbling import draw_offset
from common.crypto.two_party.transfer import TransferSender, answer, transfer_bytes
from common.errors import RemoteProtocolError
from common.privacy.randomness import SeededRandomSource


def test_a_transfer_gives_the_label_of_each_bit_and_hides_the_other():
    source = SeededRandomSource("sender")
    offset = draw_offset(source)
    sender = TransferSender(offset, source)
    bits = np.random.default_rng(1).random(300) < 0.5
    sent, held = answer(bits, sender.ask(), SeededRandomSource("receiver"))
    zeros = sender.finish(sent, len(bits))
    assert (held == np.where(bits[:, None], zeros ^ offset, zeros)).all()
    again, same = answer(~bits, sender.ask(), SeededRandomSource("receiver"))
    assert (same == held).all()  # what it holds says nothing about its bits,
    assert len(again) == len(sent)
    changed = np.unpackbits(np.frombuffer(sent, np.uint8) ^ np.frombuffer(again, np.uint8))
    assert changed[256 * 8 :].reshape(128, -1)[:, :296].all()  # and they are under a stream


@pytest.mark.parametrize("broken", [b"", bytes(128 * 256), b"\xff" * 128 * 256])
def test_a_transfer_refuses_what_is_no_group_element(broken):
    with pytest.raises(RemoteProtocolError):
        answer(np.ones(3, np.bool_), broken, SeededRandomSource("x"))


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9])
def test_messages_have_the_lengths_that_are_announced_whatever_the_bits(count):
    sender = TransferSender(draw_offset(SeededRandomSource("o")), SeededRandomSource("s"))
    asked = sender.ask()
    for bits in (np.zeros(count, np.bool_), np.ones(count, np.bool_)):
        sent, held = answer(bits, asked, SeededRandomSource("r"))
        assert (len(asked), len(sent)) == transfer_bytes(count)
        assert held.shape == sender.finish(sent, count).shape == (count, 2)


def test_an_answer_of_another_length_or_outside_of_the_group_is_refused():
    sender = TransferSender(draw_offset(SeededRandomSource("o")), SeededRandomSource("s"))
    sent, _ = answer(np.ones(9, np.bool_), sender.ask(), SeededRandomSource("r"))
    for wrong in (sent[:-1], sent + b"x", b""):
        with pytest.raises(RemoteProtocolError, match=f"of 9 bits has {len(wrong)} bytes"):
            sender.finish(wrong, 9)
    with pytest.raises(RemoteProtocolError, match="no element of its group"):
        sender.finish(bytes(255) + b"\x01" + sent[256:], 9)
