"""Short runs of `make chaos` and `make soak`."""

import pytest

from tests.chaos import soak
from tests.chaos.__main__ import Options, run


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
def test_memory_descriptors_threads_and_disk_do_not_grow_with_studies(tmp_path):
    measured = soak.run(tmp_path, studies=60, parties=2, at_once=12, seconds=600)
    assert measured.violations == []
    assert measured.done == 60
