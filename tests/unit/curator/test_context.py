"""The studies of a curator share the time of records, and which parties are online."""

from curator.context import ONLINE_FOR_S, Presence, StudyContext
from tests.unit.curator.conftest import NOW


def test_a_party_that_has_not_called_for_long_is_absent():
    now = [0.0]
    presence = Presence(lambda: now[0])
    context = StudyContext(
        store=None,
        presence=presence,
        begin=None,
        publish=None,
        clock=lambda: NOW,
        monotonic=lambda: now[0],
        later=None,
        changed=None,
    )
    assert context.absent(["north", "east"]) == ("north", "east")
    presence.saw("east", NOW)
    assert context.absent(["north", "east"]) == ("north",)
    now[0] += 24 * 3600
    assert context.absent(["north", "east"]) == ("north", "east")
    assert context.now() == "2026-01-01T00:00:00+00:00"


def test_a_party_is_online_while_it_waits_or_just_called():
    now = [0.0]
    presence = Presence(lambda: now[0])
    presence.saw("north", NOW)
    assert presence.online() == {"north"}
    now[0] += ONLINE_FOR_S
    assert presence.online() == frozenset()
    with presence.listening("east"), presence.listening("east"):
        assert presence.online() == {"east"}
    assert presence.online() == frozenset()
    assert presence.seen() == {"north": NOW}
