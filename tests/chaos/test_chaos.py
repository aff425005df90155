"""Short runs of `make chaos`, `make soak` and `make year`."""

import pytest

from tests.chaos import soak
from tests.chaos.__main__ import Options, run
from tests.chaos.year import Year


def check(figures):
    assert figures.violations == [], f"seed {figures.options.seed}"
    assert figures.done == figures.verified == figures.studies - figures.refused
    assert sum(figures.faults.values()) > 0


@pytest.mark.slow
def test_two_studies_under_faults_end_as_undisturbed_ones(quick_folder):
    kinds = ("kill -9", "SIGTERM", "SIGSTOP", "polls", "silent connections")
    options = Options(seed=31, parties=3, studies=2, batches=1, faults=8, kinds=kinds)
    check(run(quick_folder, options))


@pytest.mark.slow
def test_batches_of_studies_under_every_kind_of_fault_end_as_undisturbed_ones(tmp_path):
    check(run(tmp_path, Options(seed=6, parties=4, seconds=120)))


@pytest.mark.slow
def test_a_study_under_clock_jumps_ends_as_an_undisturbed_one_with_every_owner(tmp_path):
    options = Options(
        seed=5, parties=4, studies=4, batches=1, faults=12, kinds=("clock", "kill -9")
    )
    check(run(tmp_path, options))


def lived_through(folder, *, studies, days):
    year = Year(folder, studies=studies, days=days, seed=1)
    assert year.run() == []
    counts = year.counts
    assert counts["verified"] == len(year.offers) == studies
    assert counts["upgrades"] == 2
    assert 0 < counts["back after the queue had gone"] == counts["left before the end"]
    assert min(counts[what] for what in ("clock jumps", "restored from a backup")) > 0
    assert counts["certificates rotated"] > len(year.nodes)


def test_a_month_of_studies_owners_clocks_and_upgrades(quick_folder):
    lived_through(quick_folder, studies=4, days=31)


@pytest.mark.slow
def test_a_year_of_studies_owners_clocks_and_upgrades(tmp_path):
    lived_through(tmp_path, studies=50, days=365)


@pytest.mark.slow
def test_memory_descriptors_threads_and_disk_do_not_grow_with_studies(tmp_path):
    measured = soak.run(tmp_path, studies=60, parties=2, at_once=12, seconds=600)
    assert measured.violations == []
    assert measured.done == 60
