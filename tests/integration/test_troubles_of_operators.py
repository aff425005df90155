"""What a party's operator meets: rows away for a while, an old copy restored, a silent curator."""

import dataclasses
import logging
import shutil
import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from common.errors import InputError, LocalError
from common.service.database import Database
from common.wire.catalogue import ErrorCode, WireError
from party import app as party_app
from party.journal import JournalState
from party.settings import PartySettings
from tests.harness.consortium import (
    Crash,
    Wrapped,
    check_release,
    wait_until_finished,
    wrapping,
)


def test_a_study_that_cannot_go_on_here_is_said_and_tried_again(consortium, caplog):
    north, failures = consortium.parties["north"], 2  # a third one would be a refusal
    caplog.set_level(logging.ERROR)
    with north.context() as context:

        def open_source(study):
            nonlocal failures
            failures -= 1
            if failures >= 0:
                raise InputError("rows.csv, line 7: 'Smith' is not an age")
            return context.open_source(study)

        manager = north.manager(dataclasses.replace(context, open_source=open_source))
        attending = threading.Thread(target=manager.run, kwargs={"once": False})
        attending.start()
        assert consortium.parties["east"].attend(consortium.study) is JournalState.FINISHED
        wait_until_finished(context, consortium.study)
        north.stopping.set()
        attending.join(timeout=60)
    said = [each.message for each in caplog.records if "cannot go on here" in each.message]
    assert len(said) == 2
    assert "InputError. `parley doctor party`" in said[0]
    assert "Smith" not in caplog.text, "a log is not about rows"
    check_release(consortium)


def test_an_old_copy_of_a_folder_is_recognised_and_answers_nothing(consortium):
    north = consortium.parties["north"]
    with north.context():
        pass
    shutil.copy(north.path, north.folder / "backup.db")
    consortium.attend_all()
    north.stopping.clear()
    with north.context() as context:
        north.manager(context)._invited(north.backoff())
        assert context.ledger.spent() > 0
    shutil.copy(north.folder / "backup.db", north.path)

    digest = consortium.study.digest.hex()[:16]
    with north.context() as context:
        assert context.ledger.spent() == 0, "what was spent is forgotten"
        with pytest.raises(LocalError, match="lacks what those messages cost") as refused:
            north.manager(context).run(once=False)
        assert f"study {digest} ('test')" in str(refused.value)
        assert f'forgotten = ["{digest}"]' in str(refused.value)
        assert context.journal.studies() == []

    north.policy = dataclasses.replace(north.policy, forgotten=(digest,))
    with north.context() as context:
        assert north.manager(context)._invited(north.backoff())


class DyingSecond(Wrapped):
    """Dies of the second message."""

    def work(self, study, *, received):
        for whole in self.connection.work(study, received=received):
            if whole.sequence > 1:
                raise Crash
            yield whole


class Restored(Wrapped):
    """A curator that does not know what it sent before."""

    def work(self, study, *, received):
        raise WireError(ErrorCode.OUT_OF_ORDER)
        yield


def test_a_study_that_a_restored_curator_gave_up_ends_here_too_and_keys_go(consortium):
    north, east = consortium.parties["north"], consortium.parties["east"]
    with ThreadPoolExecutor(1) as threads:
        others = threads.submit(east.attend, consortium.study)
        with pytest.raises(Crash):
            north.attend(consortium.study, dial=wrapping(north, DyingSecond))
        consortium.curator.studies.known(consortium.study.digest).abort("an old copy")
        assert others.result(timeout=60) is JournalState.ABORTED
    ended = north.attend(consortium.study, dial=wrapping(north, Restored))
    assert ended is JournalState.ABORTED
    with north.context() as context:
        reason = context.journal.record(consortium.study.digest).reason
    assert reason.startswith("at the curator the study is failed")
    database = Database(north.path)
    assert database.rows("SELECT COUNT(*) FROM step_key") == [(0,)]
    database.close()


def test_a_node_that_is_told_to_stop_does_not_wait_for_a_curator_that_says_nothing(consortium):
    north = consortium.parties["north"]
    with north.context() as context, socket.create_server(("127.0.0.1", 0)) as silent:
        settings = PartySettings(
            folder=north.folder, keys=north.ring.folder, policy=north.folder / "policy.toml",
            curator=f"127.0.0.1:{silent.getsockname()[1]}",
        )  # fmt: skip
        node = party_app.session_manager(
            settings, context, environment={}, stopping=north.stopping, software="test"
        )
        attending = threading.Thread(target=node.run, kwargs={"once": False}, daemon=True)
        attending.start()
        with silent.accept()[0]:  # the call is under way, and stays so
            north.stopping.set()
            attending.join(timeout=10)  # gRPC gives a handshake 20 s
        assert not attending.is_alive()
