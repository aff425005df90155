"""The dashboard shows what happens, exactly, and nothing that is secret."""

import datetime as dt
import io
import json
import re
import socket
import ssl
import zipfile
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import pytest

from common.errors import InputError, LocalError
from common.privacy.laplace import DiscreteLaplace
from common.privacy.sensitivity import Sensitivity
from common.study.requests import TableRequest
from common.study.steps import SumStep
from common.wire.catalogue import ErrorCode
from common.wire.pki import certificates
from common.wire.pki.keyring import init_party
from curator.dashboard.advice import advice, troubles
from curator.dashboard.serving import Operators, Place, is_loopback, serving_dashboard
from curator.dashboard.site import Service
from curator.metrics import CallCounter
from curator.presence import ONLINE_FOR, Presence
from curator.progress import chosen_links, step_record
from curator.store.reader import StoreReader
from curator.store.records import StudyState
from tests.harness.small_study import make_study
from tests.unit.curator.conftest import NOW, Parties
from tests.unit.service.web.conftest import Client


@pytest.fixture
def shown(stage, ring, tmp_path, caplog):
    """Starts dashboards over the stage's file; each gives a client that is logged in."""
    caplog.set_level("INFO")
    held = []

    def start(*, actions=False, listen="127.0.0.1:0", operators=None, **changes):
        studies = stage.studies(**changes)
        service = Service(
            studies=studies, presence=Presence(), calls=CallCounter(), files=ring.files,
            clock=lambda: dt.datetime.now(dt.UTC), software="parley test", actions=actions,
        )  # fmt: skip
        place = Place(
            listen=listen, token=tmp_path / "token", store=stage.path, operators=operators,
            revoked=ring.revoked,
        )  # fmt: skip
        context = serving_dashboard(place, service)
        context.__enter__()
        held.append(context)
        port = int(re.findall(r"dashboard on \S+:(\d+)/", caplog.text)[-1])
        client = Client(port)
        token = (tmp_path / "token").read_text().strip()
        return SimpleNamespace(
            studies=studies, service=service, client=client, token=token, port=port
        )

    yield start
    for context in held:
        context.__exit__(None, None, None)


def document(page, state=None):
    """What the stream of events says; once its only study is in that state."""
    request = f"GET /events HTTP/1.1\r\nHost: {page.client.host}\r\nCookie: {page.client.cookie}"
    with socket.create_connection(("127.0.0.1", page.port), timeout=30) as line:
        line.sendall(f"{request}\r\n\r\n".encode())
        with line.makefile("rb") as stream:
            head = b"".join(iter(stream.readline, b"\r\n"))
            assert b"Content-Type: text/event-stream" in head
            for event in stream:
                if event.startswith(b"data: "):
                    found = json.loads(event.removeprefix(b"data: "))
                    if state is None or [s["state"] for s in found["studies"]] == [state]:
                        return found
    return pytest.fail("the stream ended")


def begin(page, stage):
    node = page.studies.propose(stage.study)
    for name in node.names:
        node.approve(name, stage.signature(name))
    return node


def test_a_study_is_shown_from_its_offer_to_its_release(stage, tables, shown, tmp_path):
    release = tmp_path / "a release"
    release.mkdir()
    (release / "synthetic.csv").write_text("a,b\n1,x\n" * 50000)
    (release / "network.svg").write_text("<svg/>")
    (release / "usage.json").write_text('{"cautions": ["No relations: 1 of 3 columns (c)"]}')
    page = shown(publish=lambda outcome: release)
    page.client.log_in(page.token)
    node = page.studies.propose(stage.study)
    (study,) = document(page, "waiting for parties")["studies"]
    assert not study["release"]
    assert [p["detail"] for p in study["phases"]] == ["0 of 2 parties", ""]
    assert all(p["awaited"] and not p["approved_at"] for p in study["parties"])
    assert {p["awaited_since"] for p in study["parties"]} == {study["proposed_at"]}
    assert page.client.ask("GET", f"/studies/{study['digest']}/release.zip").status == 404
    for name in node.names:
        node.approve(name, stage.signature(name))
    (study,) = document(page, "running")["studies"]
    assert [(p["name"], p["status"]) for p in study["phases"]] == [
        ("approvals", "done"), ("counting", "open"), ("release", "later"),
    ]  # fmt: skip
    Parties(stage.study, stage.identities, tables, node, stage.store).run()
    (study,) = document(page, "done")["studies"]
    assert study["cautions"] == ["No relations: 1 of 3 columns (c)"]
    assert [p["name"] for p in study["phases"]] == [
        "approvals", "counting", "choosing", "replacing", "release",
    ]  # fmt: skip
    assert {p["status"] for p in study["phases"]} == {"done"}
    archive = page.client.ask("GET", f"/studies/{study['digest']}/release.zip")
    assert archive.headers["content-disposition"] == 'attachment; filename="a-release.zip"'
    with zipfile.ZipFile(io.BytesIO(archive.body)) as content:
        assert content.testzip() is None
        (table,) = [name for name in content.namelist() if name.endswith("/synthetic.csv")]
        assert content.read(table) == (release / "synthetic.csv").read_bytes()
    assert page.client.ask("GET", f"/studies/{study['digest']}/network.svg").body == b"<svg/>"
    (release / "link").symlink_to(release.parent)
    assert page.client.ask("GET", f"/studies/{study['digest']}/release.zip").status == 409


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
    """No message, no result, no key, no signature: in none of the ways that text can carry them."""
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


def test_names_and_causes_travel_as_text(stage, shown, identities, rows):
    nasty = "</script><img src=x onerror=alert(1)>"
    stage.study = make_study(stage.identities, rows, name=nasty)
    page = shown()
    page.client.log_in(page.token)
    node = page.studies.propose(stage.study)
    node.decline("north", nasty)
    (study,) = document(page)["studies"]
    assert (study["name"], study["state"]) == (nasty, "refused")
    assert nasty in study["cause"]
    assert "new study" in study["advice"]
    assert nasty.encode() not in page.client.ask("GET", "/").body


def test_it_only_shows_unless_actions_are_allowed(stage, shown):
    page = shown()
    page.client.log_in(page.token)
    node = page.studies.propose(stage.study)
    body = f"csrf={csrf(page)}".encode()
    answer = page.client.ask("POST", f"/studies/{node.study.digest.hex()}/abort", body=body)
    assert answer.status == 404
    assert node.record.state is StudyState.WAITING
    assert document(page)["actions"] is False


def test_an_operator_may_give_a_study_up_where_that_is_allowed(stage, shown):
    page = shown(actions=True)
    page.client.log_in(page.token)
    node = begin(page, stage)
    path = f"/studies/{node.study.digest.hex()}/abort"
    assert page.client.ask("POST", path, body=b"csrf=wrong").status == 403
    assert page.client.ask("POST", f"/studies/{'0' * 64}/abort", body=form(page)).status == 404
    assert node.record.state is StudyState.RUNNING
    assert page.client.ask("POST", path, body=form(page)).status == 303
    assert node.record.state is StudyState.FAILED
    (study,) = document(page, "failed")["studies"]
    assert study["cause"] == "ended by the curator's operator: given up at the dashboard"
    assert study["phases"][1]["status"] == "stopped"


def csrf(page):
    front = page.client.ask("GET", "/").body.decode()
    return re.search(r'data-csrf="([^"]+)"', front)[1]


def form(page):
    return f"csrf={csrf(page)}".encode()


def test_without_a_session_nothing_is_told(stage, shown):
    page = shown()
    digest = page.studies.propose(stage.study).study.digest.hex()
    for path in ("/events", f"/studies/{digest}/release.zip", f"/studies/{digest}/network.svg"):
        assert page.client.ask("GET", path).status == 401
    assert page.client.ask("GET", "/").status == 303


def test_the_reader_cannot_write_and_says_when_it_cannot_read(stage, tmp_path):
    stage.studies()
    reader = StoreReader(stage.path)
    with pytest.raises(LocalError, match="readonly"):
        reader._rows("DELETE FROM study")
    version = reader.version()
    assert reader.version() == version
    stage.store.propose(stage.study, at="now")
    assert reader.version() != version
    assert reader.study(b"unknown") is None
    reader.close()
    with pytest.raises(LocalError):
        StoreReader(tmp_path / "missing.db").version()


def test_refused_calls_are_counted_with_what_to_do():
    calls = CallCounter()
    calls.add("Enrol", "OK")
    calls.add("Enrol", "CERTIFICATE_EXPIRED")
    calls.add("Work", "CERTIFICATE_EXPIRED")
    (trouble,) = troubles(calls.counted())
    assert (trouble["code"], trouble["count"]) == ("CERTIFICATE_EXPIRED", 2)
    assert "parley keys rotate" in trouble["todo"]
    every = CallCounter()
    for code in ErrorCode:
        every.add("Work", code.name)
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


def test_links_are_pairs_of_attributes_that_are_counted_together(stage):
    def record(sets, study=stage.study):
        step = SumStep(
            name="s", phase="p", parties=("north",), request=TableRequest(sets, (2, 3)),
            sensitivity=Sensitivity.moving(2), law=DiscreteLaplace(Fraction(4)),
        )  # fmt: skip
        return step_record(study, 0, step, at="now")

    assert record(((0,), (1,))).links == ()
    assert record(((1, 0), (0,))).links == ((0, 1),)
    assert record(((0,),)).costs == {"north": Fraction(1, 2)}
    assert chosen_links(stage.study, None, None) == ()


def test_a_party_is_online_while_it_waits_or_just_called():
    presence = Presence()
    presence.saw("north", NOW)
    later = NOW + ONLINE_FOR
    assert presence.online(NOW) == {"north"}
    assert presence.online(later) == frozenset()
    with presence.listening("east"), presence.listening("east"):
        assert presence.online(later) == {"east"}
    assert presence.online(later) == frozenset()
    assert presence.seen() == {"north": NOW}


@pytest.mark.parametrize(
    ("host", "local"),
    [("127.0.0.1", True), ("::1", True), ("localhost", True), ("192.0.2.1", False), ("hub", False)],
)
def test_plain_http_is_for_loopback_only(host, local):
    assert is_loopback(host) is local
    listen = f"[{host}]:1" if ":" in host else f"{host}:1"
    common = {"token": Path(), "store": Path(), "revoked": Path()}
    assert Place(listen=listen, operators=None, **common).secure is not local
    assert Place(listen=listen, operators=Path("o"), **common).secure


@pytest.fixture
def operator(ring, tmp_path):
    """A certificate of the consortium for somebody who looks at the dashboard."""
    now = dt.datetime.now(dt.UTC)
    own = init_party(tmp_path / "alice", "alice")
    _, path = ring.approve(own.read_request(), days=30, now=now)
    own.trust(ring.files.authority.read_bytes(), where=path)
    own.accept(path.read_bytes(), where=path, now=now)
    fingerprint = certificates.fingerprint(own.files.load().certificate)
    return SimpleNamespace(files=own.files, fingerprint=fingerprint)


def over_tls(files=None):
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if files is not None:
        context.load_cert_chain(files.certificate, files.key)
    return lambda plain: context.wrap_socket(plain, server_hostname="127.0.0.1")


def test_a_listed_certificate_logs_in_until_it_is_revoked(stage, ring, shown, operator, tmp_path):
    listed = tmp_path / "operators.txt"
    listed.write_text(f"# alice\n{operator.fingerprint}\n")
    page = shown(operators=listed)
    stranger = Client(page.port, scheme="https", wrap=over_tls())
    assert stranger.ask("GET", "/").headers["location"] == "/login"
    alice = Client(page.port, scheme="https", wrap=over_tls(operator.files))
    answer = alice.ask("GET", "/")
    (cookie,) = answer.cookies
    assert cookie.startswith(f"__Host-parley-{page.port}=")
    assert "Secure" in cookie
    front = alice.ask("GET", "/")
    assert front.status == 200
    ring.revoked.write_text(f"{operator.fingerprint}\n")
    assert alice.ask("GET", "/").status == 303


def test_a_certificate_that_is_not_listed_needs_the_token(stage, shown, operator, tmp_path):
    listed = tmp_path / "operators.txt"
    listed.write_text("")
    page = shown(operators=listed)
    alice = Client(page.port, scheme="https", wrap=over_tls(operator.files))
    assert alice.ask("GET", "/").headers["location"] == "/login"
    assert alice.log_in(page.token).status == 303
    assert alice.ask("GET", "/").status == 200


def test_tls_older_than_1_3_is_refused(shown, operator, tmp_path):
    listed = tmp_path / "operators.txt"
    listed.write_text("")
    page = shown(operators=listed)
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    old = Client(page.port, scheme="https", wrap=context.wrap_socket)
    with pytest.raises((ssl.SSLError, ConnectionError)):
        old.ask("GET", "/login")


def test_a_list_of_operators_that_cannot_be_read_stops_the_start(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        Operators(tmp_path / "missing", None, lambda: NOW)
    (tmp_path / "bad").write_text("not a fingerprint")
    with pytest.raises(InputError, match="fingerprint"):
        Operators(tmp_path / "bad", None, lambda: NOW)
