"""A node fetches the release of its study by itself, verifies it, countersigns it, and says so."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from common.privacy.randomness import OsRandomSource
from common.release.verify import verify
from common.service.database import Database
from common.service.process import system_clock
from common.study.document import Study
from common.wire.catalogue import ErrorCode, WireError
from curator.app import propose
from curator.settings import curator_settings, open_store
from parley.cli.commands.party import _not_countersigned as not_countersigned
from party import app as party_app
from party.client.dialer import Dialer
from party.collection import Collection
from party.journal import Journal
from party.owner import decisions
from party.settings import party_settings, source_settings
from party.ui.inbox import OwnerInbox
from party.ui.site import serving_ui
from tests.harness.deployed_folder import NORTH, serving
from tests.unit.service.web.conftest import Client

OWNERS = ("north", "east")


def settings_of(place, name, port, **changes):
    path = place.folder / name / "party.toml"
    settings = party_settings(path, {})
    quick = {"look_again_s": 0.2, "first_wait_s": 0.1, "curator": f"127.0.0.1:{port}"}
    return replace(settings, values=replace(settings.values, **quick, **changes)), path


def join(place, name, port, study, **changes):
    """Approve the study and take part, as `parley party join --once` does."""
    settings, path = settings_of(place, name, port, **changes)
    source = source_settings(settings, path, {})
    with party_app.party_context(settings.values, source, clock=system_clock) as context:
        seen = context.review(study, context.open_source(study))
        decisions.approve(context.approvals, seen, at=context.now())
        return party_app.session_manager(
            settings.values, context, environment={}, stopping=threading.Event(), software="parley"
        ).run(once=True)


@pytest.fixture
def done(place, written):
    """Run a study to its end; north countersigned by itself, east was told not to."""
    hub = curator_settings(place.folder / "hub" / "curator.toml", {}).values
    propose(hub, written, clock=system_clock)
    with serving(hub) as port:
        with ThreadPoolExecutor(2) as threads:
            running = [
                threads.submit(join, place, name, port, written, countersign=name == "north")
                for name in OWNERS
            ]
            for each in running:
                each.result(timeout=120)
        yield place, hub, port


def collected(place, name):
    database = Database(place.folder / name / "state" / "party.db")
    try:
        (found,) = Collection(database).all().values()
        due = Collection(database).due(Journal(database, OsRandomSource()), now=system_clock())
    finally:
        database.close()
    assert due == []
    return found


def test_a_node_has_the_countersigned_release_and_its_owners_page_offers_it(done, parley):
    place, hub, port = done
    (released,) = hub.releases.iterdir()
    names = [(s.role.value, s.name) for s in verify(released).checked.signatures]
    assert sorted(names) == [("curator", "hub"), ("party", "north")], "the curator has it, too"
    north = collected(place, "north")
    assert (north.countersigned, north.problem) == (True, "")
    signed = verify(north.place)
    assert [(s.role.value, s.name) for s in signed.checked.signatures] == [
        ("curator", "hub"), ("party", "north"),
    ]  # fmt: skip
    assert signed.verified
    east = collected(place, "east")
    assert (east.countersigned, east.place.is_file()) == (False, True)
    told = parley("party", "status", "--offline", *NORTH)
    assert f"release: {north.place.relative_to(place.folder)}" in told.out.replace(
        f"{place.folder}/", ""
    )
    assert ", countersigned" in told.out
    check_page(place, port)


def check_page(place, port):
    settings, path = settings_of(place, "north", port)
    source = source_settings(settings, path, {})
    with party_app.party_context(settings.values, source, clock=system_clock) as context:
        inbox = OwnerInbox(context, [], dial=None)
        with serving_ui(inbox, port=0) as address:
            client = Client(int(address.split(":")[2].split("/")[0]))
            client.log_in(address.rpartition("=")[2])
            front = client.ask("GET", "/").body.decode()
            study = Study.load(place.folder / "study.toml").digest.hex()
            assert f'href="/studies/{study}/release.zip"' in front
            assert "countersigned" in front
            assert "Our node does not run." in front
            answer = client.ask("GET", f"/studies/{study}/release.zip")
    assert answer.body == collected(place, "north").place.read_bytes()
    assert answer.headers["content-type"] == "application/zip"


def studies(hub):
    with open_store(hub) as store:
        return [record.study for record in store.records()]


def dialer_of(place, port):
    settings, _ = settings_of(place, "north", port)
    return Dialer(
        party_app.address_of(settings.values, environment={}, software="parley"), system_clock
    )


def collect_again(place, port, change):
    """Fetch the release of north's study once more, after a change of its records."""
    settings, path = settings_of(place, "north", port)
    source = source_settings(settings, path, {})
    with party_app.party_context(settings.values, source, clock=system_clock) as context:
        (study,) = context.collection.all()
        database = context.collection._file
        with database.transaction():
            database.write("DELETE FROM collected")
            database.write(change)
        collector = party_app.Collector(
            context=context, folder=place.folder / "again",
            countersigns=True, dial=dialer_of(place, port).dial,
        )  # fmt: skip
        assert collector.due() == [study]
        collector.collect(study)
        return context.collection.all()[study]


def test_what_our_records_contradict_is_not_countersigned_and_what_is_wrong_not_kept(done):
    place, hub, port = done
    other = "UPDATE received SET digest = x'00' WHERE number > 1"
    found = collect_again(place, port, other)
    assert not found.countersigned
    assert "not those that were published to us" in found.problem
    settings, path = settings_of(place, "north", port)
    with party_app.party_context(
        settings.values, source_settings(settings, path, {}), clock=system_clock
    ) as context:  # what `party join --once` ends with
        assert list(not_countersigned(context, settings.values)) == studies(hub)
        told_not_to = replace(settings.values, countersign=False)
        assert not_countersigned(context, told_not_to) == {}
    found.place.unlink()
    with (
        dialer_of(place, port).dial() as connection,
        pytest.raises(WireError) as refused,
    ):
        connection.countersign(next(iter(studies(hub))), bytes(64))
    assert refused.value.code is ErrorCode.APPROVAL_INVALID
    with open_store(hub) as store:
        (record,) = store.records()
    table = Path(record.place) / "synthetic.csv"
    table.write_text(table.read_text().replace("Female", "Male", 1))
    found = collect_again(place, port, other)
    assert found.place is None
    assert "synthetic.csv" in found.problem
    assert list((place.folder / "again").iterdir()) == []
