"""What an owner decides in the browser is what the command line would have written."""

import contextlib
import datetime as dt
import re
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import pytest

from common.service.database import Database
from common.study import progress
from common.wording import moment
from party.journal import JournalState
from party.ledger import Caps, LedgerCharge
from party.ui.inbox import OwnerInbox
from party.ui.site import serving_ui
from tests.harness.policies import GivenPolicy
from tests.unit.party.ui.conftest import NASTY
from tests.unit.service.web.conftest import Client


@pytest.fixture
def opened(context):
    """Serves a inbox; gives a client that has logged in with the printed address."""
    with contextlib.ExitStack() as stack:

        def start(studies=(), dial=None, whose=context, node=lambda: None):
            inbox = OwnerInbox(whose, studies, dial=dial, node=node)
            address = stack.enter_context(serving_ui(inbox, port=0))
            port, token = re.fullmatch(
                r"http://127\.0\.0\.1:(\d+)/login#token=([\w-]{43})", address
            ).groups()
            client = Client(int(port))
            assert client.log_in(token).status == 303
            return client

        yield start


def page_of(client, study):
    return client.ask("GET", f"/studies/{study.digest.hex()}")


def send(client, study, what, **fields):
    found = page_of(client, study).body.decode()
    csrf = re.search(r'name="csrf" value="([^"]+)"', found)[1]
    cost = re.search(r'name="cost" value="([^"]+)"', found)
    fields = {"csrf": csrf, "cost": cost[1] if cost else "", **fields}
    body = "&".join(f"{name}={value}" for name, value in fields.items()).encode()
    return client.ask("POST", f"/studies/{study.digest.hex()}/{what}", body=body)


def test_a_review_says_what_the_command_line_says(opened, context, study):
    shown = page_of(opened([study]), study).body.decode()
    seen = context.review(study, context.open_source(study))
    assert seen.cost == Fraction(7, 3)
    for words in (seen.digest, "not signed", "7/3 (about 2.333)", "23/3", *seen.leaves):
        assert words in shown
    assert shown.count("protected") >= len(seen.protections)
    assert NASTY not in shown
    assert "&lt;img src=x" in shown


@pytest.mark.parametrize("source_of_people", [True, False])
def test_a_study_of_rows_that_meets_a_source_of_people_is_warned_of(
    opened, study, source_of_people
):
    shown = page_of(opened([study]), study).body.decode()
    assert ("It protects single rows, and our source says whose row" in shown) == source_of_people


def test_approving_writes_what_the_command_line_writes(opened, context, study):
    answer = send(opened([study]), study, "approve", sure="yes")
    assert (answer.status, answer.headers["location"]) == (303, f"/studies/{study.digest.hex()}")
    decision = context.approvals.decision(study.digest)
    assert (decision.approved, decision.epsilon) == (True, Fraction(7, 3))
    assert (decision.decided_by, decision.decided_at) == ("owner", context.now())


def test_declining_keeps_the_reason_here(opened, context, study):
    client = opened([study])
    assert send(client, study, "decline", reason="no+need").status == 303
    decision = context.approvals.decision(study.digest)
    assert (decision.approved, decision.reason) == (False, "no need")
    shown = page_of(client, study).body.decode()
    assert "declined by the owner" in shown
    assert '<button type="submit">Approve' not in shown


def test_an_approval_is_withdrawn_with_a_button_that_says_what_that_means(opened, context, study):
    client = opened([study])
    send(client, study, "approve", sure="yes")
    context.journal.begin(study.digest, name="health", data_digest="d", at="now")
    charge = LedgerCharge(
        study=study.digest.hex(), study_name="health", step="one", mechanism="m",
        epsilon=Fraction(1, 3),
    )  # fmt: skip
    context.ledger.charge(charge, Caps(per_study=Fraction(9), in_total=Fraction(9)), "now")
    shown = page_of(client, study).body.decode()
    assert "Withdraw for good" in shown
    assert "Epsilon 1/3 (about 0.3333) was charged for what has left, and stays charged" in shown
    assert send(client, study, "decline", reason="a+doubt").status == 303
    decision = context.approvals.decision(study.digest)
    assert (decision.approved, decision.reason) == (False, "a doubt")
    shown = page_of(client, study).body.decode()
    assert f"withdrawn on {moment(decision.withdrawn_at)}" in shown
    assert "Withdraw for good" not in shown
    assert context.ledger.spent() == Fraction(1, 3)


def test_a_study_that_is_over_has_no_button_to_withdraw(opened, context, study):
    client = opened([study])
    before = page_of(client, study)
    send(client, study, "approve", sure="yes")
    context.journal.begin(study.digest, name="health", data_digest="d", at="now")
    context.journal.end(study.digest, JournalState.FINISHED, reason="", at="now")
    assert "Withdraw" not in page_of(client, study).body.decode()
    csrf = re.search(r'name="csrf" value="([^"]+)"', before.body.decode())[1]
    path = f"/studies/{study.digest.hex()}/decline"
    answer = client.ask("POST", path, body=f"csrf={csrf}&reason=".encode())
    assert answer.status == 409
    assert b"is over for us (finished)" in answer.body
    assert context.approvals.decision(study.digest).approved


@pytest.mark.parametrize(
    ("fields", "status"),
    [({}, 409), ({"sure": "yes", "cost": "1"}, 409), ({"sure": "yes", "csrf": "x"}, 403)],
)
def test_without_the_box_the_shown_cost_or_the_token_nothing_is_decided(
    opened, context, study, fields, status
):
    assert send(opened([study]), study, "approve", **fields).status == status
    assert context.approvals.decision(study.digest) is None


def test_what_the_policy_refuses_cannot_be_approved(opened, context, study):
    lower = replace(context.policy, epsilon_per_study=Fraction(1))
    strict = replace(context, policies=GivenPolicy(lower))
    client = opened([study], whose=strict)
    shown = page_of(client, study).body.decode()
    assert "Our policy refuses it" in shown
    assert "Approve this study" not in shown
    answer = send(client, study, "approve", sure="yes", cost="7/3")
    assert answer.status == 409
    assert context.approvals.decision(study.digest) is None


def test_the_page_says_which_policy_counts_and_that_a_broken_one_does_not(opened, context, study):
    assert "as the test says" in opened([study]).ask("GET", "/").body.decode()
    broken = GivenPolicy(context.policy, complaint="policy.toml: no budget")
    shown = opened([study], whose=replace(context, policies=broken)).ask("GET", "/").body.decode()
    assert "The policy on disk cannot be used." in shown
    assert "policy.toml: no budget" in shown


def test_nothing_is_shown_or_decided_without_logging_in(opened, context, study):
    client = opened([study])
    stranger = Client(client.port)
    assert page_of(stranger, study).status == 401
    path = f"/studies/{study.digest.hex()}/approve"
    assert stranger.ask("POST", path, body=b"sure=yes&cost=7/3&csrf=").status == 401
    assert context.approvals.decision(study.digest) is None


def test_the_ledger_is_shown_with_its_exact_sum_and_its_chain(opened, context):
    for step, epsilon in (("one", Fraction(1, 3)), ("two", Fraction(1, 6))):
        charge = LedgerCharge(
            study="s", study_name=NASTY, step=step, mechanism="m", epsilon=epsilon
        )
        caps = Caps(per_study=Fraction(9), in_total=Fraction(9))
        context.ledger.charge(charge, caps, "2026-01-01T00:00:00+00:00")
    client = opened()
    shown = client.ask("GET", "/").body.decode()
    assert "epsilon 0.5 of a row spent, our cap is 10" in shown
    assert "chain verified" in shown
    assert context.ledger.head() in shown
    assert NASTY not in shown


def test_a_ledger_that_was_changed_is_reported(opened, context, tmp_path):
    charge = LedgerCharge(study="s", study_name="n", step="t", mechanism="m", epsilon=Fraction(1))
    caps = Caps(per_study=Fraction(9), in_total=Fraction(9))
    context.ledger.charge(charge, caps, "2026-01-01T00:00:00+00:00")
    other = Database(tmp_path / "party.db")
    with other.transaction():
        other.write("UPDATE entry SET epsilon = '1/1000'")
    other.close()
    shown = opened().ask("GET", "/").body.decode()
    assert "tampered" in shown
    assert "chain verified" not in shown


def test_the_transcript_lists_what_left(opened, context, study):
    journal = context.journal
    journal.begin(study.digest, name=study.name, data_digest="d", at=context.now())
    with journal.transaction():
        journal.add_outgoing(
            study.digest, b"x" * 1234, kind="share", recipient="curator", at=context.now()
        )
    shown = opened().ask("GET", "/").body.decode()
    assert "1 message, 1,234 bytes" in shown
    assert NASTY not in shown


def test_studies_come_from_the_curator_when_it_is_asked(opened, context, study):
    sent = study.to_toml()

    @contextlib.contextmanager
    def dial():
        yield SimpleNamespace(
            enrol=lambda name, identity: [
                SimpleNamespace(study=study.digest, state=progress.StudyState.RUNNING)
            ],
            fetch_study=lambda digest: sent,
        )

    client = opened(dial=dial)
    assert page_of(client, study).status == 404
    csrf = re.search(r'name="csrf" value="([^"]+)"', client.ask("GET", "/").body.decode())[1]
    assert client.ask("POST", "/ask", body=f"csrf={csrf}".encode()).status == 303
    assert page_of(client, study).status == 200
    assert study.digest.hex() in client.ask("GET", "/").body.decode()


def test_a_decision_stands_on_top_and_says_that_our_node_must_run(opened, study):
    client = opened([study], node=lambda: None)
    assert "does not run" not in page_of(client, study).body.decode()  # nothing is decided yet
    send(client, study, "approve", sure="yes")
    decided = page_of(client, study).body.decode()
    assert decided.index("approved by the owner") < decided.index("Our node does not run")
    assert decided.index("Our node does not run") < decided.index("What it costs")
    running = opened([study], node=lambda: "process 7")
    assert "does not run" not in page_of(running, study).body.decode()


def test_a_review_begins_with_the_purpose_and_says_what_epsilon_means(opened, study):
    said = replace(study, purpose=f"Plan wards {NASTY}", expires=dt.date(2026, 6, 30))
    shown = page_of(opened([said]), said).body.decode()
    assert shown.index("Plan wards &lt;img") < shown.index("What it costs")
    assert "2026-06-30" in shown
    cost = shown[shown.index("What it costs") : shown.index("What it is about")]
    assert "a suspicion of 50 % about a row can become about 91 % at most" in cost
