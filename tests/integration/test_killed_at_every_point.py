"""Kill -9 of the curator and of every party, at every point where one of them writes anything."""

import json
import subprocess
import sys

import pytest

from tests.harness.process_consortium import ROOT


def kill_everybody(folder, stride, *how):
    words = [str(folder / "study"), str(stride), *how]
    done = subprocess.run(
        [sys.executable, "-m", "tests.harness.kill_everywhere", *words],
        cwd=ROOT, capture_output=True, text=True, timeout=3600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def test_some_points_of_everybody(tmp_path):
    points = kill_everybody(tmp_path, stride=100)
    assert set(points) == {"curator", "north", "east"}


@pytest.mark.slow
def test_some_points_of_everybody_while_a_party_is_gone_for_good(tmp_path):
    points = kill_everybody(tmp_path, 60, "without")
    assert set(points) == {"curator", "north", "east"}


@pytest.mark.slow
def test_every_point_of_everybody_while_a_party_is_gone_for_good(tmp_path):
    points = kill_everybody(tmp_path, 1, "without")
    assert min(points.values()) > 100, points


@pytest.mark.slow
def test_every_point_of_everybody(tmp_path):
    points = kill_everybody(tmp_path, stride=1)
    assert min(points.values()) > 50, points


@pytest.mark.slow
@pytest.mark.parametrize("stride", [40, 1])
def test_points_of_everybody_in_a_study_with_criteria(tmp_path, stride):
    points = kill_everybody(tmp_path, stride, "criteria")
    assert set(points) == {"curator", "north", "east"}


@pytest.mark.slow
@pytest.mark.parametrize("stride", [20, 1])
def test_points_of_everybody_in_a_two_party_computation(tmp_path, stride):
    points = kill_everybody(tmp_path, stride, "two-party")
    assert set(points) == {"curator", "north", "east"}


@pytest.mark.slow
@pytest.mark.parametrize("stride", [60, 1])
def test_points_of_everybody_in_a_study_with_a_delta(tmp_path, stride):
    points = kill_everybody(tmp_path, stride, "delta")
    assert set(points) == {"curator", "north", "east"}
    assert min(points.values()) > 50, points


@pytest.mark.slow
@pytest.mark.parametrize("stride", [60, 1])
def test_points_of_everybody_in_a_study_of_people_and_events(tmp_path, stride):
    points = kill_everybody(tmp_path, stride, "linked")
    assert set(points) == {"curator", "north", "east"}
