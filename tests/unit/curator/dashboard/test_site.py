"""What an operator sees and may do in a browser."""

import io
import re
import zipfile

from curator.store.records import StudyState
from tests.unit.curator.conftest import Parties, begin, document


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


def test_what_the_browser_has_is_not_sent_again(stage, shown):
    page = shown()
    page.client.log_in(page.token)
    version = page.client.ask("GET", "/state").headers["etag"]
    again = page.client.ask("GET", "/state", If_None_Match=version)
    assert (again.status, again.body) == (304, b"")
    page.studies.propose(stage.study)
    newer = page.client.ask("GET", "/state", If_None_Match=version)
    assert newer.status == 200
    assert newer.headers["etag"] != version


def csrf(page):
    front = page.client.ask("GET", "/").body.decode()
    return re.search(r'data-csrf="([^"]+)"', front)[1]


def form(page):
    return f"csrf={csrf(page)}".encode()


def test_without_a_session_nothing_is_told(stage, shown):
    page = shown()
    digest = page.studies.propose(stage.study).study.digest.hex()
    for path in ("/state", f"/studies/{digest}/release.zip", f"/studies/{digest}/network.svg"):
        assert page.client.ask("GET", path).status == 401
    assert page.client.ask("GET", "/").status == 303
