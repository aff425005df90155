"""The states of a study on the wire; a node need not know that a release is being made."""

from __future__ import annotations

from collections.abc import Mapping

from common.study.progress import StudyState
from common.wire.v1 import curator_pb2 as pb

TO_WIRE: Mapping[StudyState, pb.StudyState] = {
    StudyState.WAITING: pb.STUDY_STATE_WAITING_FOR_PARTIES,
    StudyState.PUBLISHING: pb.STUDY_STATE_RUNNING,
    StudyState.RUNNING: pb.STUDY_STATE_RUNNING,
    StudyState.DONE: pb.STUDY_STATE_DONE,
    StudyState.REFUSED: pb.STUDY_STATE_REFUSED,
    StudyState.FAILED: pb.STUDY_STATE_FAILED,
}
FROM_WIRE = {number: state for state, number in TO_WIRE.items()}  # running, not publishing
