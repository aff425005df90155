"""What the dashboard shows is exact, and nothing of it is secret."""

import json
from fractions import Fraction

import pytest

from common.wire.catalogue import ErrorCode
from common.wording import many
from curator.dashboard.snapshot import advice, troubles
from curator.metrics import CallCounter
from curator.store.records import StudyState
from tests.harness.linked import SCHEMA as LINKED
from tests.harness.small_study import make_study
from tests.unit.curator.conftest import Parties, begin, document


def test_a_study_that_cannot_be_read_is_shown_as_such_beside_the_others(stage, tables, shown):
    page = shown()
    page.client.log_in(page.token)
    node = begin(page, stage)
    Parties(stage.study, stage.identities, tables, node, stage.store).run()
    with stage.database.transaction():
        stage.database.write("UPDATE study SET document = 'of another time'")
    page.studies.propose(make_study(stage.identities, {"north": 40, "east": 50}, name="next"))
    fresh, old = document(page)["studies"]
    assert (fresh["name"], fresh["state"]) == ("next", "waiting for parties")
    assert fresh["waits_for"].startswith("the approval of north, east, since 2026-01-01")
    assert fresh["waits_for"].endswith("without a last day (expires)")
    assert (old["name"], old["state"]) == ("test", "done, unreadable")
    assert "this version of parley cannot read its text" in old["cause"]
    assert old.keys() == fresh.keys(), "the page draws both"


def test_a_study_that_waits_too_long_is_shown_as_overdue(stage, shown):
    page = shown()
    page.client.log_in(page.token)
    begin(page, stage)  # by a clock of months ago
    (study,) = document(page)["studies"]
    assert study["waits_for"].startswith("the answer of east, north in step 1, since 2026-01-01")
    assert "overdue" in study["advice"]
    assert study["overdue"]
    assert all(party["awaited_since"].startswith("2026-01-01") for party in study["parties"])
    assert all(party["awaited_for"].endswith(" days") for party in study["parties"])


def test_budgets_are_exact_sums_of_the_steps(stage, tables, shown):
    page = shown()
    page.client.log_in(page.token)
    node = begin(page, stage)
    Parties(stage.study, stage.identities, tables, node, stage.store).run()
    found = document(page)
    (outcome,) = stage.outcomes
    for party in found["studies"][0]["parties"]:
        costs = [step.costs.get(party["name"], Fraction(0)) for step in outcome.steps]
        assert Fraction(party["budget"]["sum"]) == sum(costs)
        terms = [term.split(" * ") for term in party["budget"]["terms"]]
        added = sum(Fraction(t[-1]) * (int(t[0]) if len(t) == 2 else 1) for t in terms)
        assert added == sum(costs)
    assert {p["name"]: p["spent"] for p in found["parties"]} == {
        p["name"]: p["budget"]["sum"] for p in found["studies"][0]["parties"]
    }


def test_bytes_are_those_of_the_messages(stage, tables, shown):
    page = shown()
    page.client.log_in(page.token)
    node = begin(page, stage)
    said = Parties(stage.study, stage.identities, tables, node, stage.store).run()
    for party in document(page)["studies"][0]["parties"]:
        own = [len(body) for name, _, body in said if name == party["name"]]
        assert party["bytes_in"] == sum(own)
        assert party["bytes_out"] > 0


def test_nothing_secret_is_in_the_document(stage, tables, shown):
    """Look for messages, results, keys and signatures, in every way that text can carry them."""
    page = shown()
    page.client.log_in(page.token)
    node = begin(page, stage)
    Parties(stage.study, stage.identities, tables, node, stage.store).run()
    text = json.dumps(document(page))
    secrets = [row[0] for row in stage.database.rows("SELECT signature FROM approval")]
    secrets += [row[0] for row in stage.database.rows("SELECT body FROM content")]
    secrets += [member.identity.encoded for member in stage.study.members]
    assert secrets
    for secret in secrets:
        assert secret.hex() not in text
        assert secret.hex()[:24] not in text
    assert page.token not in text


def test_tables_are_told_in_rows_or_in_people_and_their_events(stage, shown, rows):
    page = shown()
    page.client.log_in(page.token)
    page.studies.propose(stage.study)
    linked = make_study(stage.identities, rows, schema=LINKED, method="floor", name="linked")
    page.studies.propose(linked)
    told = {study["name"]: study["tables"] for study in document(page)["studies"]}
    assert told["linked"] == f"{linked.rows} people, 2 attributes; visits, 2 attributes"
    columns = many(len(stage.study.schema.names), "attribute")
    assert told[stage.study.name] == f"{stage.study.rows} rows, {columns}"


def test_names_and_causes_travel_as_text(stage, shown, identities, rows):
    nasty = "</script><img src=x onerror=alert(1)>"
    stage.study = make_study(stage.identities, rows, name=nasty)
    page = shown()
    page.client.log_in(page.token)
    node = page.studies.propose(stage.study)
    node.decline("north", reason=nasty)
    (study,) = document(page)["studies"]
    assert (study["name"], study["state"]) == (nasty, "refused")
    assert nasty in study["cause"]
    assert "new study" in study["advice"]
    assert nasty.encode() not in page.client.ask("GET", "/").body


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
