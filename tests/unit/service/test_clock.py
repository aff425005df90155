"""Times in records are in UTC, to the second, whatever zone they came in."""

import datetime as dt

from common.service.clock import stamp, system_clock


def test_one_moment_is_written_one_way():
    moment = dt.datetime(2026, 3, 1, 0, 30, 15, 999_999, tzinfo=dt.UTC)
    zones = [dt.timezone(dt.timedelta(hours=hours)) for hours in (-11, 0, 5, 14)]
    assert {stamp(moment.astimezone(zone)) for zone in zones} == {"2026-03-01T00:30:15+00:00"}


def test_the_clock_knows_its_zone_and_stamps_sort_as_times_do():
    assert system_clock().utcoffset() == dt.timedelta(0)
    moments = [dt.datetime(2026, m, d, tzinfo=dt.UTC) for m in (2, 10, 11) for d in (1, 9, 10)]
    assert sorted(map(stamp, moments)) == list(map(stamp, sorted(moments)))
