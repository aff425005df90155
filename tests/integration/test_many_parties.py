"""A masked study of many parties over real gRPC and mutual TLS on loopback."""

import pytest

from tests.harness.consortium import Consortium, finish
from tests.harness.small_study import EveryKindOfStep


class OneSum(EveryKindOfStep):
    """The sum over everybody: what grows with the number of parties."""

    def step(self):
        return None if self.results else super().step()


@pytest.mark.parametrize("parties", [20, pytest.param(100, marks=pytest.mark.slow)])
def test_many_parties_end_in_the_release_of_the_in_process_run(parties, tmp_path):
    consortium = Consortium(tmp_path, [f"party {number}" for number in range(parties)])
    consortium.key = None
    for node in (consortium.curator, *consortium.parties.values()):
        node.begin = OneSum
    consortium.curator.start()
    try:
        consortium.curator.studies.propose(consortium.study)
        finish(consortium)
    finally:
        consortium.curator.stop()
