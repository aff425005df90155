"""A study in a list, on the wire; a node need not know that a release is being made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

from common.study.ids import StudyId
from common.study.progress import StudyState, StudySummary
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
_SAME = [field.name for field in fields(StudySummary) if field.name not in ("study", "state")]


def summary_to_wire(summary: StudySummary) -> pb.StudySummary:
    same = {name: getattr(summary, name) for name in _SAME}
    return pb.StudySummary(study=summary.study, state=TO_WIRE[summary.state], **same)


def summary_from_wire(summary: pb.StudySummary) -> StudySummary:
    same = {name: getattr(summary, name) for name in _SAME}
    return StudySummary(study=StudyId(summary.study), state=FROM_WIRE[summary.state], **same)
