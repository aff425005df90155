"""Cut connections, slow ones, a proxy on the way: the study ends in the same release."""

import contextlib
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from common.service.database import Database
from common.study.messages import StudyFinished
from common.wire import codec
from party.client.connection import HungUpError
from party.journal import JournalState
from tests.harness.consortium import (
    Crash,
    Wrapped,
    in_process,
    same_results,
    wait_until_finished,
    wrapping,
)
from tests.integration.test_tls import proxy


class Relay:
    """Passes bytes on to a port, slowly, and cuts every connection after so many bytes."""

    def __init__(self, port, *, cut_after=0, delay_s=0.0):
        self.port, self.cut_after, self.delay_s = port, cut_after, delay_s
        self.cuts = 0
        self.sockets = []
        self.threads = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.own_port = self.listener.getsockname()[1]
        self.spawn(self.accept)

    def spawn(self, target, *arguments):
        self.threads.append(threading.Thread(target=target, args=arguments))
        self.threads[-1].start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                server = socket.create_connection(("127.0.0.1", self.port))
                self.sockets += [client, server]
                for pair in ((client, server), (server, client)):
                    self.spawn(self.pump, *pair)

    def pump(self, source, target):
        passed = 0
        with contextlib.suppress(OSError):
            while data := source.recv(4096):
                time.sleep(self.delay_s)
                target.sendall(data)
                passed += len(data)
                if self.cut_after and passed > self.cut_after:
                    self.cuts += 1
                    # A connection gets further each time, as a flaky one does in the end.
                    self.cut_after += self.cut_after // 4
                    break
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for one in self.sockets:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        for thread in self.threads:
            thread.join(timeout=20)
        for one in self.sockets:
            one.close()


def check_release(consortium):
    expected = in_process(consortium, None).model.results
    assert same_results(consortium.curator.outcomes[-1].model.results, expected)
    assert len(consortium.curator.outcomes) == 1


def test_connections_cut_again_and_again(consortium):
    relay = Relay(consortium.curator.port, cut_after=3_000)
    try:
        for party in consortium.parties.values():
            party.dial = partial(party.dial, port=relay.own_port)
        assert set(consortium.attend_all().values()) == {JournalState.FINISHED}
    finally:
        relay.close()
    assert relay.cuts > 2
    check_release(consortium)


def test_a_slow_link(consortium):
    relay = Relay(consortium.curator.port, delay_s=0.02)
    try:
        slow = consortium.parties["east"]
        slow.dial = partial(slow.dial, port=relay.own_port)
        assert set(consortium.attend_all().values()) == {JournalState.FINISHED}
    finally:
        relay.close()
    check_release(consortium)


def test_a_proxy_on_the_way(consortium):
    with proxy() as (address, asked):
        party = consortium.parties["east"]
        party.dial = partial(party.dial, proxy=address)
        assert set(consortium.attend_all().values()) == {JournalState.FINISHED}
    assert set(asked) == {f"127.0.0.1:{consortium.curator.port}"}
    check_release(consortium)


def test_a_node_attends_every_study_it_is_invited_to_until_it_is_stopped(consortium):
    north = consortium.parties["north"]
    with north.context() as context:
        manager = north.manager(context, look_again_s=0.02)
        attending = threading.Thread(target=manager.run, kwargs={"once": False})
        attending.start()
        assert consortium.parties["east"].attend(consortium.study) is JournalState.FINISHED
        wait_until_finished(context, consortium.study)
        north.stopping.set()
        attending.join(timeout=60)
    assert not attending.is_alive()
    check_release(consortium)


class DyingLast(Wrapped):
    """Dies of the last message, before it is on disk."""

    def work(self, study, *, received):
        for whole in self.connection.work(study, received=received):
            if isinstance(codec.TO_PARTY.decode(whole.body), StudyFinished):
                raise Crash
            yield whole


def test_a_party_that_was_away_when_the_study_ended_hears_of_it_and_wipes_its_keys(consortium):
    north = consortium.parties["north"]
    with ThreadPoolExecutor(1) as threads:
        others = threads.submit(consortium.parties["east"].attend, consortium.study)
        with pytest.raises(Crash):
            north.attend(consortium.study, dial=wrapping(north, DyingLast))
        assert others.result(timeout=60) is JournalState.FINISHED
    with north.context() as context:
        assert context.journal.state(consortium.study.digest) is JournalState.RUNNING
        assert north.manager(context).run(once=True) == {
            consortium.study.digest: JournalState.FINISHED
        }
    database = Database(north.path)
    assert database.rows("SELECT COUNT(*) FROM step_key") == [(0,)]
    database.close()
    check_release(consortium)


def test_calls_after_hanging_up_say_that_the_node_is_stopping(consortium):
    dialer = consortium.parties["north"].dialer()
    with dialer.dial() as connection:
        assert connection.enrol("north", b"")
        dialer.hang_up()
        with pytest.raises(HungUpError):
            connection.enrol("north", b"")
        with pytest.raises(HungUpError):
            list(connection.work(consortium.study.digest, received=0))
    with pytest.raises(HungUpError), dialer.dial():
        pass
