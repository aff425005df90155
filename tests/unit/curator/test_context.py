"""The studies of a curator share the time of records, and which parties are online."""

import datetime as dt

from curator.context import ONLINE_FOR, Presence, StudyContext
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


def test_a_party_is_online_while_it_waits_or_just_called():
    presence = Presence()
    presence.saw("north", NOW)
    later = NOW + ONLINE_FOR
    assert presence.online(NOW) == {"north"}
    assert presence.online(later) == frozenset()
    with presence.listening("east"), presence.listening("east"):
        assert presence.online(later) == {"east"}
    assert presence.online(later) == frozenset()
    assert presence.seen() == {"north": NOW}
