"""A log does not repeat itself more often than it may, and says how much it left out."""

import logging

import pytest

from common.service.log_limits import RateLimit


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
