"""Logs are JSON without what an exception quotes; signals set an event."""

import io
import json
import logging
import os
import signal

import pytest

from common.errors import InputError
from common.service import JsonFormatter, check_level, stopping_on_signals


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
    assert any("test_service.py" in place for place in line["at"])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_sets_the_event_and_the_handlers_come_back(number):
    before = signal.getsignal(number)
    with stopping_on_signals() as stopping:
        assert not stopping.is_set()
        os.kill(os.getpid(), number)
        assert stopping.wait(5)
    assert signal.getsignal(number) is before


def test_an_unknown_level_is_refused():
    check_level("Info")
    with pytest.raises(InputError, match="debug, info, warning, error"):
        check_level("loud")
