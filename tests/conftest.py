"""What every test may ask for."""

import atexit
import gc
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings

pytest_plugins = ["tests.harness.small_study", "tests.harness.command_line"]

# Some tests fork to kill a process for good. gRPC's own handlers, if another test in the same
# process has used it, wake its threads in the child, and that may hang. No such child uses gRPC.
os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"

# A machine that others use may be slow at any moment: no test here is about time. The examples of
# property tests are the same in every run, so that a change is judged by what it changes; `make
# test-all` draws new ones (`--hypothesis-profile wandering`).
settings.register_profile("the same examples", deadline=None, derandomize=True, max_examples=50)
settings.register_profile("wandering", deadline=None)
settings.load_profile("the same examples")

# Thousands of tests are objects that stay: the garbage collector need not look at them again.
gc.disable()


def pytest_collection_finish():
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
    gc.enable()
    atexit.register(gc.unfreeze)  # or libraries complain at the very end of what they leaked


SHARED = Path(__file__).resolve().parents[2] / "shared"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The public research tables; a test that needs them is skipped, visibly, without them."""
    folder = SHARED / "data"
    if not folder.is_dir():
        pytest.skip("the research tables (../shared/data) are not on this machine")
    return folder


@pytest.fixture
def quick_folder(tmp_path):
    """A folder in memory where there is one: a killed process needs no disk to lose its memory."""
    memory = Path("/dev/shm")  # noqa: S108  # where Linux keeps it
    if not memory.is_dir():
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        yield Path(folder)
