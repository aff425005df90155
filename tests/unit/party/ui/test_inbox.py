"""Which studies wait for the owner."""

import contextlib
from dataclasses import replace
from types import SimpleNamespace

import pytest

from common.errors import PolicyError
from common.study.progress import StudyState
from common.wire.catalogue import ErrorCode, WireError
from party.ui.inbox import OwnerInbox


def test_another_study_than_the_one_invited_to_is_not_put_on_the_desk(context, study):
    other = replace(study, name="other")

    @contextlib.contextmanager
    def dial():
        yield SimpleNamespace(
            enrol=lambda name, identity: [
                SimpleNamespace(study=study.digest, state=StudyState.RUNNING)
            ],
            fetch_study=lambda digest: other.to_toml(),
        )

    inbox = OwnerInbox(context, [], dial=dial)
    inbox.ask()
    assert inbox.studies() == []


def test_a_text_that_is_no_study_hides_no_other(context, study):
    sent = {b"x": "name = 5", study.digest: study.to_toml()}

    @contextlib.contextmanager
    def dial():
        yield SimpleNamespace(
            enrol=lambda name, identity: [
                SimpleNamespace(study=digest, state=StudyState.RUNNING) for digest in sent
            ],
            fetch_study=lambda digest: sent[digest],
        )

    inbox = OwnerInbox(context, [], dial=dial)
    inbox.ask()
    assert [each.digest for each, _ in inbox.studies()] == [study.digest]


def test_a_study_that_ended_without_us_is_nothing_to_decide_about(context, study):
    summary = SimpleNamespace(study=study.digest, state=StudyState.WAITING)

    @contextlib.contextmanager
    def dial():
        yield SimpleNamespace(
            enrol=lambda name, identity: [summary], fetch_study=lambda digest: study.to_toml()
        )

    inbox = OwnerInbox(context, [], dial=dial)
    inbox.ask()
    assert [each.digest for each, _ in inbox.studies()] == [study.digest]
    summary.state = StudyState.FAILED
    inbox.ask()
    assert inbox.studies() == []


def test_a_curator_out_of_reach_is_said_and_nothing_more(context):
    def dial():
        raise WireError(ErrorCode.UNAVAILABLE)

    inbox = OwnerInbox(context, [], dial=dial)
    inbox.ask()
    assert "could not be asked" in inbox.answer


def test_what_costs_more_than_was_shown_is_not_approved(context, study):
    inbox = OwnerInbox(context, [study], dial=None)
    with pytest.raises(PolicyError, match="Review it again"):
        inbox.approve(study, shown_cost="1")
