"""A consortium of roles in one process: nothing is sent, stored or waited for."""

from common.crypto.paillier.blinding import PowerBlinder
from common.privacy.randomness import KEY_BYTES, KeyedRandomSource, SeededRandomSource
from common.study.sums import needs_key
from curator.role import CuratorRole
from parley.simulation.in_process import RowsInMemory, run_roles
from party.role import PartyRole


def one_stream(name):
    """Return one stream for all steps."""
    stream = SeededRandomSource(name)
    return lambda step: stream


def stream_per_step(name):
    """Return one stream per step, under a key drawn when the step is first asked for."""
    keys, made = SeededRandomSource(name), {}

    def source_of(step):
        if step not in made:
            made[step] = KeyedRandomSource(keys.random_bytes(KEY_BYTES), private=False)
        return made[step]

    return source_of


def curator_role(study, begin, *, key=None, source_of=None):
    return CuratorRole(
        study=study,
        run=begin(study),
        private_key=key if needs_key(study) else None,
        source_of=source_of or one_stream("curator"),
    )


def party_role(study, begin, name, identity, table, *, source_of=None):
    return PartyRole(
        study=study,
        run=begin(study),
        name=name,
        identity=identity,
        data=RowsInMemory(table),
        source_of=source_of or one_stream(name),
        blinder_of=PowerBlinder,
    )


def make_roles(study, begin, identities, tables, *, key=None, sources=one_stream):
    """Return the curator's role, and the role of every party by name."""
    parties = {
        name: party_role(study, begin, name, identities[name], table, source_of=sources(name))
        for name, table in tables.items()
    }
    return curator_role(study, begin, key=key, source_of=sources("curator")), parties


def replayed(study, begin, identities, tables, *, key=None, drop=None):
    """Run a study with the keys that services draw from sources seeded with their names."""
    roles = make_roles(study, begin, identities, tables, key=key, sources=stream_per_step)
    return run_roles(*roles, drop=drop)
