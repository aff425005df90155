"""States of studies on the wire: each has one, and what comes back is as over as what was sent."""

import pytest

from common.study.progress import StudyState
from common.wire.study_states import FROM_WIRE, TO_WIRE
from common.wire.v1 import curator_pb2 as pb


@pytest.mark.parametrize("state", StudyState)
def test_a_state_comes_back_but_that_publishing_is_running(state):
    back = FROM_WIRE[TO_WIRE[state]]
    assert back is (StudyState.RUNNING if state is StudyState.PUBLISHING else state)
    assert (back.over, back.failed) == (state.over, state.failed)


def test_every_number_of_the_contract_is_a_state():
    assert set(FROM_WIRE) == set(pb.StudyState.values()) - {pb.STUDY_STATE_UNSPECIFIED}
