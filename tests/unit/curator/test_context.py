"""What the studies of a curator share: the time as records have it, and who is there."""

import datetime as dt

from curator.context import StudyContext
from curator.presence import Presence
from tests.unit.curator.conftest import NOW


def test_a_party_that_has_not_called_for_long_is_absent():
    presence, now = Presence(), [NOW]
    context = StudyContext(
        store=None,
        presence=presence,
        begin=None,
        publish=None,
        clock=lambda: now[0],
        later=None,
        changed=None,
    )
    assert context.absent(["north", "east"]) == ("north", "east")
    presence.saw("east", NOW)
    assert context.absent(["north", "east"]) == ("north",)
    now[0] += dt.timedelta(days=1)
    assert context.absent(["north", "east"]) == ("north", "east")
    assert context.now() == "2026-01-02T00:00:00+00:00"
