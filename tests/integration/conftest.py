"""Consortia for tests, stopped in the end."""

import pytest

from common.crypto.sums.plan import Aggregation
from tests.harness.consortium import NAMES, Consortium


@pytest.fixture
def gathering(tmp_path, paillier_key):
    """Makes consortia, and stops their curators in the end."""
    made = []

    def make(parties=3, **changes):
        folder = tmp_path / f"consortium {len(made)}"
        folder.mkdir()
        made.append(Consortium(folder, NAMES[:parties], **changes))
        made[-1].curator.start()
        made[-1].session = made[-1].curator.studies.propose(made[-1].study)
        made[-1].key = None
        if made[-1].study.aggregation is Aggregation.PAILLIER:
            # One key for all tests saves their time; a study without one makes its own.
            made[-1].key = paillier_key
            made[-1].curator.store.keep_paillier_key(made[-1].study.digest, paillier_key)
        return made[-1]

    yield make
    for consortium in made:
        for party in consortium.parties.values():
            party.stopping.set()
        consortium.curator.stop()


@pytest.fixture
def consortium(gathering):
    """Start a curator and two parties, and propose a study to them."""
    return gathering(2)
