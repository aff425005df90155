"""One service on a folder; logs are JSON, without quotations and floods; signals set an event."""

import datetime as dt
import io
import json
import logging
import os
import signal
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from common.errors import InputError
from common.service.process import (
    LOCK,
    JsonFormatter,
    RateLimit,
    alone_in,
    check_level,
    logging_failures,
    running_in,
    software,
    stamp,
    stopping_on_signals,
    system_clock,
)

ROOT = Path(__file__).resolve().parents[3]


def logged(write):
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter())
    logger = logging.Logger("a.b")
    logger.addHandler(handler)
    write(logger)
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_line_is_one_json_object():
    (line,) = logged(lambda logger: logger.warning("study %s\nwaits", "ä"))
    assert line["message"] == "study ä\nwaits"
    assert (line["level"], line["logger"]) == ("warning", "a.b")
    assert line["time"].endswith("+00:00")


def test_an_exceptions_text_is_not_logged():
    def write(logger):
        try:
            raise InputError("row 7 holds 'Ada Lovelace'")
        except InputError:
            logger.exception("a table cannot be read")

    (line,) = logged(write)
    assert "Lovelace" not in json.dumps(line)
    assert line["error"] == "InputError"
    assert any("test_process.py" in place for place in line["at"])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_sets_the_event_and_the_handlers_come_back(number):
    before = signal.getsignal(number)
    with stopping_on_signals() as stopping:
        assert not stopping.is_set()
        os.kill(os.getpid(), number)
        assert stopping.wait(5)
    assert signal.getsignal(number) is before


def test_a_hang_up_is_survived():
    program = (
        "import os, signal\n"
        "signal.signal(signal.SIGHUP, signal.SIG_DFL)\n"
        "from common.service.process import stopping_on_signals\n"
        "with stopping_on_signals() as stopping:\n"
        "    os.kill(os.getpid(), signal.SIGHUP)\n"
        "    print('running' if not stopping.is_set() else 'stopping')\n"
        "assert signal.getsignal(signal.SIGHUP) is signal.SIG_DFL\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True)
    assert (done.returncode, done.stdout) == (0, b"running\n")


def test_an_unknown_level_is_refused():
    check_level("Info")
    with pytest.raises(InputError, match="debug, info, warning, error"):
        check_level("loud")


def test_a_process_with_a_pipe_from_its_parent_stops_when_the_pipe_ends():
    program = (
        "from common.service.process import stopping_on_signals\n"
        "with stopping_on_signals(with_stdin=True) as stopping:\n"
        "    print('running', flush=True)\n"
        "    assert stopping.wait(30)\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", program], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with child:
        assert child.stdout.readline() == b"running\n"
        assert child.poll() is None
        child.stdin.close()
        assert child.wait(timeout=30) == 0


HOLDING = (
    "import sys, time\n"
    "from pathlib import Path\n"
    "from common.service.process import alone_in\n"
    "with alone_in(Path(sys.argv[1]), service='curator'):\n"
    "    print('running', flush=True)\n"
    "    time.sleep(60)\n"
)


def test_a_folder_has_one_service_until_that_is_killed(tmp_path):
    folder = tmp_path / "new" / "state"
    child = subprocess.Popen(
        [sys.executable, "-c", HOLDING, str(folder)], cwd=ROOT, stdout=subprocess.PIPE
    )
    with child:
        assert child.stdout.readline() == b"running\n"
        with (
            pytest.raises(InputError, match="another curator runs on this folder") as refusal,
            alone_in(folder, service="curator"),
        ):
            pass
        assert str(folder) in str(refusal.value)
        assert f"process {child.pid})" in str(refusal.value)
        child.kill()
    for _ in range(2):  # a block that ended lets the next one in, as a killed process does
        with alone_in(folder, service="curator"):
            assert (folder / LOCK).read_text() == f"{os.getpid()}\n"


def test_a_folder_that_cannot_be_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(InputError, match="file"),
        alone_in(tmp_path / "file", service="curator"),
    ):
        pass


def test_a_service_may_open_as_many_files_as_its_hard_limit_allows():
    code = (
        "import resource\n"
        "from common.service.process import raise_open_files\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (256, 2000))\n"
        "print(raise_open_files(), *resource.getrlimit(resource.RLIMIT_NOFILE))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=True)
    assert done.stdout.split() == [b"2000", b"2000", b"2000"]


def test_the_folder_of_a_service_is_private_and_says_who_runs_there(tmp_path):
    folder = tmp_path / "made" / "state"
    assert running_in(folder) is None
    with alone_in(folder, service="test"):
        assert folder.stat().st_mode & 0o777 == 0o700
        assert running_in(folder) == f"process {os.getpid()}"
    assert running_in(folder) is None, "the file stays and means nothing"


def test_one_moment_is_written_one_way():
    moment = dt.datetime(2026, 3, 1, 0, 30, 15, 999_999, tzinfo=dt.UTC)
    zones = [dt.timezone(dt.timedelta(hours=hours)) for hours in (-11, 0, 5, 14)]
    assert {stamp(moment.astimezone(zone)) for zone in zones} == {"2026-03-01T00:30:15+00:00"}


def test_the_clock_knows_its_zone_and_stamps_sort_as_times_do():
    assert system_clock().utcoffset() == dt.timedelta(0)
    moments = [dt.datetime(2026, m, d, tzinfo=dt.UTC) for m in (2, 10, 11) for d in (1, 9, 10)]
    assert sorted(map(stamp, moments)) == list(map(stamp, sorted(moments)))


def test_an_installation_says_its_version_and_a_bare_checkout_its_name(monkeypatch):
    assert software() == f"parley {metadata.version('parley')}"

    def missing(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", missing)
    assert software() == "parley"


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def heard(clock):
    logger, lines = logging.Logger("a.b"), []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())
    logger.addHandler(handler)
    logger.addFilter(RateLimit(per_second=2, clock=clock))
    return logger, lines


def test_repetitions_are_counted_and_told_with_the_next_line(heard, clock):
    logger, lines = heard
    for number in range(5):
        logger.warning("caller %s", number)
    clock.now = 0.4
    logger.warning("caller %s", 5)
    clock.now = 0.5
    logger.warning("caller %s at 100%%", 6)
    logger.warning("caller %s", 7)
    clock.now = 1.0
    logger.warning("caller %s", 8)
    assert lines == ["caller 0", "caller 6 at 100%", "caller 7 (5 more like this)", "caller 8"]


def test_other_messages_and_levels_are_not_held_back(heard):
    logger, lines = heard
    for _ in range(3):
        logger.warning("one")
        logger.warning("two")
        logger.error("one")
    assert lines == ["one", "two", "one"]


def test_a_record_may_say_its_own_kind(heard):
    logger, lines = heard
    for name in ("Status", "Submit", "Status"):
        logger.warning("%s refused", name, extra={"kind": name})
    assert lines == ["Status refused", "Submit refused"]


def test_the_memory_is_bounded(clock):
    limit = RateLimit(per_second=1, clock=clock)
    for number in range(3000):
        limit.filter(logging.LogRecord("a", logging.INFO, "", 0, f"{number}", None, None))
    assert len(limit._kinds) <= 1000


def test_what_is_tried_again_is_logged_and_a_defect_is_raised(caplog):
    logger = logging.getLogger("tried")
    with logging_failures(logger, "study %s cannot go on", "ab"):
        raise InputError("the disk is full: 100 %")
    assert caplog.messages == ["study ab cannot go on: the disk is full: 100 %"]
    with pytest.raises(ZeroDivisionError), logging_failures(logger, "never"):
        raise ZeroDivisionError
