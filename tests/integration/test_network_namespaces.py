"""A curator and its parties in network namespaces of their own, under every kind of weather."""

import time

import pytest

from curator.store.records import StudyState
from tests.harness.network_emulation import CUT, FAIR, Forwarded, Netem, Weather, make_country
from tests.harness.process_consortium import NAMES, ProcessConsortium

KINDS = [Forwarded, pytest.param(Netem, marks=pytest.mark.slow)]
STORM = Weather(delay_s=0.03, loss=0.05, duplicate=0.1, reorder=0.25)
WEATHERS = {
    "delay": Weather(delay_s=0.15),
    "loss": Weather(delay_s=0.005, loss=0.15),
    "duplicates": Weather(delay_s=0.005, duplicate=0.5),
    "reordering": Weather(delay_s=0.02, reorder=0.5),
    "rate limit": Weather(rate=8_000),
}
TRACES = {"loss": "lost", "duplicates": "doubled", "reordering": "reordered"}


@pytest.fixture(params=KINDS, ids=lambda kind: kind.__name__.lower())
def consortium(request, tmp_path):
    """Everybody's processes in namespaces that are gone afterwards, whatever happens."""
    country = make_country(request.param, NAMES)
    try:
        made = ProcessConsortium(tmp_path, country=country)
        made.propose()
        try:
            yield made
        finally:
            made.stop()
    finally:
        country.close()


def start(consortium):
    for who in ("curator", *NAMES):
        consortium.start(who)


def check_traces(country, *kinds):
    """Check that the network was as bad as the test says; the kernel keeps no count."""
    for link in country.links.values():
        if link.seen is not None:
            assert link.seen["carried"] > 20
    for kind in kinds:
        if next(iter(country.links.values())).seen is not None:
            assert country.seen(kind) > 0, kind


def cut_once_it_runs(consortium, link):
    """Cut a link in the middle of the study."""
    consortium.wait_for(lambda: consortium.record().state is StudyState.RUNNING)
    link.weather = CUT
    assert consortium.record().place == "", "the study was not over yet"


def test_a_storm_and_a_cut_in_the_middle_end_in_the_release_of_the_in_process_run(consortium):
    consortium.country.all_under(STORM)
    start(consortium)
    link = consortium.country.links["east"]
    cut_once_it_runs(consortium, link)
    time.sleep(1.5)
    link.weather = STORM
    consortium.check_end()
    check_traces(consortium.country, "lost", "doubled", "reordered")


@pytest.mark.slow
@pytest.mark.parametrize("weather", WEATHERS)
def test_each_kind_of_bad_weather_ends_in_the_release_of_the_in_process_run(consortium, weather):
    consortium.country.all_under(WEATHERS[weather])
    start(consortium)
    consortium.check_end()
    check_traces(consortium.country, *filter(None, [TRACES.get(weather)]))


@pytest.mark.slow
def test_everybody_cut_off_again_and_again(consortium):
    slow = Weather(delay_s=0.1)
    consortium.country.all_under(slow)
    start(consortium)
    consortium.wait_for(lambda: consortium.record().state is StudyState.RUNNING)
    for _ in range(3):
        for link in consortium.country.links.values():
            link.weather = CUT
            time.sleep(0.7)
            link.weather = slow
            time.sleep(0.7)
    consortium.check_end()
    check_traces(consortium.country, "lost")


@pytest.mark.slow
def test_a_cut_that_outlasts_every_connection_is_gone_back_from(consortium):
    """Longer than gRPC's pings bear: the party loses its connection, dials, and is let in again."""
    consortium.country.all_under(Weather(delay_s=0.1))
    start(consortium)
    link = consortium.country.links["north"]
    cut_once_it_runs(consortium, link)
    consortium.wait_for(lambda: "UNAVAILABLE" in consortium.log("north"), seconds=200)
    link.weather = FAIR
    consortium.check_end()


@pytest.mark.slow
def test_a_party_that_is_cut_off_before_the_study_begins_is_waited_for(consortium):
    consortium.country.links["east"].weather = CUT
    start(consortium)
    consortium.wait_for(
        lambda: "refused" in consortium.log("east") or "UNAVAILABLE" in consortium.log("east")
    )
    assert consortium.record().step == 0
    consortium.country.links["east"].weather = FAIR
    consortium.check_end()
