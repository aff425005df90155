"""Whole studies over real gRPC and mutual TLS on loopback."""

import pytest

from curator.store import StudyState as CuratorState
from party.journal import StudyState
from tests.integration.consortium import NAMES, Consortium, in_process, same_results


@pytest.fixture
def gathering(tmp_path):
    """Makes consortia, and stops their curators in the end."""
    made = []

    def make(parties=3, **changes):
        folder = tmp_path / f"consortium {len(made)}"
        folder.mkdir()
        made.append(Consortium(folder, NAMES[:parties], **changes))
        made[-1].curator.start()
        return made[-1]

    yield make
    for consortium in made:
        consortium.curator.stop()


@pytest.mark.parametrize("parties", [1, 2, 3])
def test_a_masked_study_ends_in_the_release_of_the_in_process_run(gathering, parties):
    consortium = gathering(parties)
    node = consortium.curator.studies.propose(consortium.study)
    ends = consortium.attend_all()
    assert set(ends.values()) == {StudyState.FINISHED}
    assert node.record.state is CuratorState.DONE
    assert node.record.place == "release"
    (outcome,) = consortium.curator.outcomes
    assert same_results(outcome.model.results, in_process(consortium))
    for party in consortium.parties.values():
        with party.house() as house:
            assert house.ledger.spent() > 0
