"""A curator's keys, and those of the parties that it gave a certificate."""

from common.service.process import system_clock
from common.wire.pki.keyring import init_curator, init_party

LOOPBACK = ("127.0.0.1",)


def authority(folder, *, hosts=LOOPBACK, now=None):
    """The keys of a curator that certifies its parties itself."""
    return init_curator(folder, "hub", hosts, now=now or system_clock(), external=False)


def enrolled(ring, folder, name, *, days=30, now=None):
    """The keys of a party with a certificate of this authority."""
    now = now or system_clock()
    own = init_party(folder, name)
    _, path = ring.approve(own.read_request(), days=days, now=now)
    own.trust(ring.files.authority.read_bytes(), where=path)
    own.accept(path.read_bytes(), where=path, now=now)
    return own
