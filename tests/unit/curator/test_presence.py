"""Who is online."""

from curator.presence import ONLINE_FOR, Presence
from tests.unit.curator.conftest import NOW


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
