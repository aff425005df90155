"""A file system that is really full, under the party's ledger and under the curator's store."""

import threading
import time

import pytest

from common.errors import LocalError
from common.wire.catalogue import WireError
from curator.store.records import StudyState
from tests.harness.consortium import Crash, Wrapped, check_release, finish, wrapping
from tests.harness.disks import NoMountError, fill, mounted
from tests.integration.test_ended_studies import approve

_KIB = 1024


@pytest.fixture
def small_disk(tmp_path):
    """Mount a file system that a test can fill; skip, visibly, where this is not allowed."""
    place = tmp_path / "small disk"
    place.mkdir()
    try:
        with mounted(place):
            yield place
    except NoMountError as error:
        pytest.skip(str(error))


class Filling(Wrapped):
    """The disk becomes full when the first step was answered."""

    def submit(self, study, messages):
        newest = self.connection.submit(study, messages)
        if not self.filled:
            self.filled.append(fill(self.place))
        return newest


def test_a_full_disk_under_the_ledger_charges_and_sends_nothing_until_there_is_room(
    gathering, small_disk
):
    consortium = gathering(1)
    north = consortium.parties["north"]
    north.path = small_disk / "north.db"
    ballast = []

    class FillingThis(Filling):
        filled, place = ballast, small_disk

    living, north.dial = north.dial, wrapping(north, FillingThis)
    with pytest.raises(LocalError, match=r"full.*Nothing was charged and nothing was sent"):
        north.attend(consortium.study)
    north.dial = living
    for _ in range(2):  # however often it is tried
        with pytest.raises(LocalError, match="Nothing was charged"):
            north.attend(consortium.study)
    ballast[0].unlink()
    with north.context() as context:
        assert [entry.charge.step for entry in context.ledger.entries()] == ["tables"]
        assert len(context.journal.sent_log()) == 1
    finish(consortium)


def test_a_full_disk_under_the_store_takes_nothing_in_until_there_is_room(gathering, small_disk):
    consortium = gathering(1)
    curator, north = consortium.curator, consortium.parties["north"]
    curator.stop()
    curator.folder = small_disk
    curator.start()
    curator.studies.propose(consortium.study)
    ballast = []

    class FillingThat(Wrapped):
        def submit(self, study, messages):
            if not ballast:
                ballast.append(fill(small_disk))
                with pytest.raises(Exception, match="INTERNAL"):
                    self.connection.submit(study, messages)
                raise Crash
            return self.connection.submit(study, messages)

    north.dial = wrapping(north, FillingThat)
    with pytest.raises(Crash):
        north.attend(consortium.study)
    record = curator.store.record(consortium.study.digest)
    assert (record.state, record.step) == (StudyState.RUNNING, 0)
    ballast[0].unlink()
    finish(consortium)


def test_a_full_disk_at_the_last_approval_only_delays_the_study(gathering, small_disk):
    consortium = gathering(2)
    curator, north = consortium.curator, consortium.parties["north"]
    curator.stop()
    curator.folder = small_disk
    curator.start()
    node = curator.studies.propose(consortium.study)
    approve(consortium.parties["east"], consortium.study)
    working = curator.studies.context.store.move
    ballast = []

    def fill_first(*arguments, **named):
        if not ballast:  # the approval is on disk, and the study is about to begin
            ballast.append(fill(small_disk))
        working(*arguments, **named)

    curator.studies.context.store.move = fill_first
    with pytest.raises(WireError, match="INTERNAL"):
        approve(north, consortium.study)
    curator.studies.open()  # as a running curator does every second
    assert node.record.state is StudyState.WAITING
    assert node.waiting_for == ()
    ballast[0].unlink()
    for _ in range(10):
        curator.studies.open()
    assert node.record.state is StudyState.RUNNING
    finish(consortium)


def test_a_full_disk_under_the_releases_only_delays_the_release(gathering, small_disk):
    consortium = gathering(1)
    curator, north = consortium.curator, consortium.parties["north"]
    ballast = [fill(small_disk)]
    making = curator.publish

    def publish(outcome):
        (small_disk / "synthetic.csv").write_bytes(bytes(_KIB))
        return making(outcome)

    curator.publish = publish
    curator.restart()
    attending = threading.Thread(target=north.attend, args=(consortium.study,))
    attending.start()
    record = curator.store.record(consortium.study.digest)
    deadline = time.monotonic() + 60
    while not record.cause and time.monotonic() < deadline:
        time.sleep(0.02)
        record = curator.store.record(consortium.study.digest)
    assert record.state is StudyState.PUBLISHING
    assert "No space left on device. The curator tries again by itself" in record.cause
    ballast[0].unlink()
    for _ in range(10):
        curator.studies.open()
    attending.join(timeout=60)
    check_release(consortium)
