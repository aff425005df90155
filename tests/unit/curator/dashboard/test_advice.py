"""Every trouble comes with advice."""

import pytest

from common.wire.catalogue import ErrorCode
from curator.dashboard.advice import advice, troubles
from curator.metrics import CallCounter
from curator.store.records import StudyState


def test_refused_calls_are_counted_with_what_to_do():
    calls = CallCounter()
    calls.add("Enrol", outcome="OK")
    calls.add("Enrol", outcome="CERTIFICATE_EXPIRED")
    calls.add("Work", outcome="CERTIFICATE_EXPIRED")
    (trouble,) = troubles(calls.counted())
    assert (trouble["code"], trouble["count"]) == ("CERTIFICATE_EXPIRED", 2)
    assert "parley keys rotate" in trouble["todo"]
    every = CallCounter()
    for code in ErrorCode:
        every.add("Work", outcome=code.name)
    assert len(troubles(every.counted())) == len(ErrorCode)


@pytest.mark.parametrize(
    ("state", "cause", "word"),
    [
        (StudyState.REFUSED, "declined", "new study"),
        (StudyState.FAILED, "given up", "log"),
        (StudyState.PUBLISHING, "disk full", "tries again"),
        (StudyState.RUNNING, "another version", "tries again"),
    ],
)
def test_every_trouble_comes_with_advice(state, cause, word):
    assert word in advice(state, cause)


@pytest.mark.parametrize("state", [StudyState.WAITING, StudyState.RUNNING, StudyState.DONE])
def test_a_study_that_goes_on_needs_none(state):
    assert advice(state, "") == ""
