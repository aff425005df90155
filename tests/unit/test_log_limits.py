"""Floods of log lines: a few are written, the others are counted."""

import logging
import re
import threading

import pytest

from common.log_limits import RateLimit


class Lines(logging.Handler):
    """Keeps what was written, and says when a summary was."""

    def __init__(self):
        super().__init__()
        self.written = []
        self.summarised = threading.Event()

    def emit(self, record):
        self.written.append(record.getMessage())
        if "more lines like this one" in self.written[-1]:
            self.summarised.set()


@pytest.fixture
def lines():
    return Lines()


@pytest.fixture
def logger(lines):
    made = logging.Logger("flooded")
    made.addHandler(lines)
    logging.Logger.manager.loggerDict[made.name] = made
    yield made
    del logging.Logger.manager.loggerDict[made.name]


def test_a_flood_is_a_few_lines_and_their_number(logger, lines):
    logger.addFilter(RateLimit(3))
    for number in range(12_349):
        logger.warning("refused: %s", number)
    assert lines.summarised.wait(10)
    counted = [
        int(n.replace(",", "")) for n in re.findall(r"and ([\d,]+) more", "".join(lines.written))
    ]
    plain = [line for line in lines.written if "more lines" not in line]
    assert plain[:3] == ["refused: 0", "refused: 1", "refused: 2"]
    assert len(lines.written) < 100
    assert counted
    assert counted[0] > 1


def test_a_flood_of_one_kind_hides_no_other_kind_and_no_report(logger, lines):
    logger.addFilter(RateLimit(1, clock=lambda: 0.0))
    for _ in range(10):
        logger.warning("%s refused", "Status", extra={"kind": "Status"})
        logger.info("a report")
    logger.warning("%s refused", "Submit", extra={"kind": "Submit"})
    logger.error("a defect")
    assert lines.written.count("Status refused") == 1
    assert lines.written.count("a report") == 10
    assert lines.written[-2:] == ["Submit refused", "a defect"]


def test_after_a_second_lines_are_written_again(logger, lines):
    now = [0.0]
    logger.addFilter(RateLimit(1, clock=lambda: now[0]))
    for second in range(3):
        now[0] = float(second)
        logger.warning("late")
        logger.warning("late")
    assert lines.written.count("late") == 3
