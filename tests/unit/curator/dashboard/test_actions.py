"""What an operator may do at the dashboard, and what is refused there."""

import datetime as dt
import re
from dataclasses import replace
from urllib.parse import urlencode

import pytest

from common.crypto.identities.identity import Identity
from common.privacy.randomness import SeededRandomSource
from common.study.signatures import approval_statement
from curator.store.records import StudyState
from tests.harness.small_study import Sums, make_study
from tests.unit.curator.conftest import Parties, begin, document

SIGNER = Identity.generate(SeededRandomSource("signer"))
ACTIONS = ("abort", "missing", "renew", "reform")


def do(page, study, action, **fields):
    front = page.client.ask("GET", "/").body.decode()
    csrf = re.search(r'data-csrf="([^"]+)"', front)[1]
    body = urlencode({"csrf": csrf, **fields}).encode()
    return page.client.ask("POST", f"/studies/{study.digest.hex()}/{action}", body=body)


@pytest.fixture
def finished(stage, tables, shown, tmp_path):
    """A dashboard where studies may be offered, and a study that is done."""
    stage.study = replace(stage.study, name="health 2026", method="floor")
    page = shown(signer=SIGNER, publish=lambda outcome: tmp_path)
    page.client.log_in(page.token)
    node = begin(page, stage)
    Parties(stage.study, stage.identities, tables, node, stage.store).run()
    assert node.record.state is StudyState.DONE
    return page


@pytest.fixture
def three(stage, identities, rows):
    """The stage, with a study of three owners."""
    stage.identities = identities
    stage.study = make_study(identities, rows, method="floor", name="regional", colluders=0)
    return stage


@pytest.mark.parametrize(
    ("rights", "allowed"),
    [
        ({}, ()),
        ({"actions": True}, ("abort", "missing")),
        ({"signer": SIGNER}, ("renew", "reform")),
    ],
)
def test_each_right_opens_its_own_actions(stage, shown, rights, allowed):
    page = shown(**rights)
    page.client.log_in(page.token)
    page.studies.propose(stage.study)
    for action in ACTIONS:
        if action in allowed:
            path = f"/studies/{stage.study.digest.hex()}/{action}"
            assert page.client.ask("POST", path, body=b"csrf=wrong").status == 403, action
            assert do(page, replace(stage.study, name="other"), action).status == 404, action
        else:
            assert do(page, stage.study, action, owner="east").status == 404, action
    state = document(page)
    assert (state["actions"], state["offers"]) == ("abort" in allowed, "renew" in allowed)
    assert page.studies.store.record(stage.study.digest).state is StudyState.WAITING


def test_next_years_study_is_offered_once_and_signed_by_the_curator(stage, finished):
    (shown_study,) = document(finished, "done")["studies"]
    assert shown_study["next_name"] == "health 2027"
    assert do(finished, stage.study, "renew").status == 303
    fresh, earlier = finished.studies.store.records()
    assert {fresh.name, earlier.name} == {"health 2026", "health 2027"}
    fresh = max(fresh, earlier, key=lambda record: record.name)
    assert fresh.state is StudyState.WAITING
    study = finished.studies.store.study(fresh.study)
    assert study.signer == study.curator == SIGNER.public.fingerprint
    assert study.members == stage.study.members
    again = do(finished, stage.study, "renew")
    assert again.status == 409
    assert b"it was offered already" in again.body
    assert len(finished.studies.store.records()) == 2


def test_a_study_whose_last_day_is_over_is_renewed_without_one(stage, shown, tables, tmp_path):
    last = (stage.now + dt.timedelta(days=10)).date()
    stage.study = replace(stage.study, expires=last, method="floor")
    page = shown(signer=SIGNER, publish=lambda outcome: tmp_path)
    page.client.log_in(page.token)
    Parties(stage.study, stage.identities, tables, begin(page, stage), stage.store).run()
    stage.set_clock(dt.timedelta(days=20))
    answer = do(page, stage.study, "renew")
    assert answer.status == 303
    newest = page.studies.store.records()[-1].study
    assert page.studies.store.study(newest).expires is None


def test_a_study_that_is_not_over_is_neither_renewed_nor_offered_again(stage, shown):
    page = shown(signer=SIGNER)
    page.client.log_in(page.token)
    begin(page, stage)
    assert b"it is not done (running)" in do(page, stage.study, "renew").body
    assert b"it is not over (running)" in do(page, stage.study, "reform", owner="east").body
    assert len(page.studies.store.records()) == 1


def test_a_study_is_offered_again_without_an_owner(three, shown):
    page = shown(actions=True, signer=SIGNER)
    page.client.log_in(page.token)
    page.studies.propose(three.study)
    assert do(page, three.study, "abort").status == 303
    assert do(page, three.study, "reform", owner="nobody").status == 409
    assert do(page, three.study, "reform", owner="south").status == 303
    (again,) = [each for each in page.studies.store.records() if not each.state.over]
    assert again.name == "regional, without south"
    assert page.studies.store.members(again.study) == ("north", "east")


def test_an_owner_is_declared_missing_where_the_study_allows_it(three, shown):
    three.study = replace(three.study, may_miss=1)
    page = shown(actions=True, begin=Sums)
    page.client.log_in(page.token)
    page.studies.propose(three.study)
    assert b"it does not run" in do(page, three.study, "missing", owner="south").body
    session = page.studies.session(three.study.digest, "north")
    for name in three.identities:
        statement = approval_statement(study=three.study.digest, party=name)
        session.approve(name, three.identities[name].sign(statement))
    (shown_study,) = document(page, "running")["studies"]
    assert shown_study["can_miss"]
    assert do(page, three.study, "missing", owner="nobody").status == 409
    assert do(page, three.study, "missing", owner="south").status == 303
    assert page.studies.store.asked_to_miss() == [(three.study.digest, "south")]


def test_no_owner_is_missing_in_a_study_that_needs_all(stage, shown):
    page = shown(actions=True)
    page.client.log_in(page.token)
    begin(page, stage)
    answer = do(page, stage.study, "missing", owner="east")
    assert answer.status == 409
    assert b"it needs all of its owners" in answer.body
    assert not document(page)["studies"][0]["can_miss"]
