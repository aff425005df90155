"""A node met a study that it could not read: stopped later, it ends as any node does."""

import threading

import pytest

from party.client.session import PartySession


@pytest.fixture
def defect(monkeypatch):
    """Let every turn of a study fail in a way that no error of ours describes."""
    met = threading.Event()

    def take_turn(*_):
        met.set()
        raise TypeError("unhashable type: 'list'")

    monkeypatch.setattr(PartySession, "take_turn", take_turn)
    return met


def test_a_stopped_node_has_said_so_in_its_log_and_raises_nothing(consortium, defect, caplog):
    north = consortium.parties["north"]
    with north.context() as context:
        stopper = threading.Thread(target=lambda: (defect.wait(30), north.stopping.set()))
        stopper.start()
        endings = north.manager(context).run(once=False)
        stopper.join()
    assert endings == {}
    assert "cannot go on here: TypeError" in caplog.text


def test_a_node_that_was_asked_for_these_studies_alone_fails(consortium, defect):
    north = consortium.parties["north"]
    with north.context() as context, pytest.raises(TypeError):
        north.manager(context).run(once=True)
