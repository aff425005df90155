"""A rehearsal runs with the owners' own nodes, reads none of their rows, and costs nothing."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from common.errors import InputError
from common.privacy.statement import REHEARSAL
from common.release.prior import read_prior
from common.release.verify import verify
from common.service.database import Database
from common.service.process import system_clock
from common.study.document import Study
from curator.app import propose
from curator.settings import curator_settings
from party import app as party_app
from party.collection import Collection
from party.ledger import Ledger
from party.settings import party_settings, source_settings
from tests.harness.deployed_folder import HUB, NORTH, POLICY, serving
from tests.harness.linked import SCHEMA as LINKED

OWNERS = ("north", "east")


def join(place, name, port):
    """Take part, as `parley party join --once` does, by what the policy approves."""
    path = place.folder / name / "party.toml"
    settings = party_settings(path, {})
    quick = {"look_again_s": 0.2, "first_wait_s": 0.1, "curator": f"127.0.0.1:{port}"}
    values = replace(settings.values, **quick)
    source = source_settings(settings, path, {})
    with party_app.party_context(values, source, clock=system_clock) as context:
        return party_app.session_manager(
            values, context, environment={}, stopping=threading.Event(), software="parley"
        ).run(once=True)


def records(place, name):
    """Return a party's charges and the release that it collected."""
    with Database(place.folder / name / "state" / "party.db") as database:
        return Ledger(database).entries(), list(Collection(database).all().values())


@pytest.fixture
def written(place, parley, request):
    """Write the study, of a table or of people and their events."""
    schema = getattr(request, "param", None)
    if schema is not None:
        (place.folder / "schema.toml").write_text(schema.to_toml())
    assert parley(*place.words()).code == 0
    return Study.load(place.folder / "study.toml")


@pytest.fixture
def rehearsal(place, written, parley):
    """Write the rehearsal of a study; no owner's table has its columns, and policies allow it."""
    done = parley("curator", "study", "rehearse", "study.toml", "--out", "rehearsal.toml", *HUB)
    assert done.code == 0, done.err
    for name in OWNERS:
        allows = POLICY.format(per_study=1) + "[approval]\nrehearsals = true\n"
        (place.folder / name / "policy.toml").write_text(allows)
    (place.folder / "data.csv").write_text("other\n1\n")
    return Study.load(place.folder / "rehearsal.toml")


@pytest.mark.parametrize(
    "written", [None, pytest.param(LINKED, marks=pytest.mark.slow, id="linked")], indirect=True
)
def test_a_rehearsal_runs_to_its_release_without_rows_and_without_a_charge(
    place, written, rehearsal, parley
):
    assert (rehearsal.name, rehearsal.rehearsal) == ("rehearsal of regional", True)
    assert (
        replace(rehearsal, name=written.name, rehearsal=False, signature=None).digest
        == written.digest
    )
    seen = parley("party", "review", "rehearsal.toml", *NORTH)
    assert "This is a rehearsal." in seen.out
    assert "It charges nothing. The study itself will charge epsilon 1" in seen.out
    hub = curator_settings(place.folder / "hub" / "curator.toml", {}).values
    propose(hub, rehearsal, clock=system_clock)
    with serving(hub) as port, ThreadPoolExecutor(2) as threads:
        for each in [threads.submit(join, place, name, port) for name in OWNERS]:
            each.result(timeout=120)
    for name in OWNERS:
        charged, (collected,) = records(place, name)
        assert charged == []
        assert (collected.countersigned, collected.problem) == (True, "")
    (released,) = hub.releases.iterdir()
    check_release(released, parley)


def check_release(released, parley):
    found = verify(released, all_parties=True, rehearsal=True)
    assert found.verified
    assert found.consistency.derived
    privacy = found.consistency.privacy
    assert (privacy["private"], privacy["not_private_because"]) == (False, [REHEARSAL])
    refused = parley("verify", str(released))
    assert refused.code == 3
    assert "study.toml: is of a rehearsal" in refused.err
    assert parley("verify", str(released), "--rehearsal").code == 0
    with pytest.raises(InputError, match="of a rehearsal"):
        read_prior(released)
    assert "REHEARSAL" in (released / "report.html").read_text()


def test_a_release_of_a_rehearsal_cannot_pass_for_one_about_rows(place, written, rehearsal, parley):
    """Whoever strikes the mark out has another study, which no owner approved."""
    text = (place.folder / "rehearsal.toml").read_text()
    unsigned = text[: text.index("[signature]")].replace("rehearsal = true\n", "")
    assert Study.from_toml(unsigned).digest != rehearsal.digest
    with pytest.raises(InputError, match="signature"):
        Study.from_toml(text.replace("rehearsal = true\n", ""))
