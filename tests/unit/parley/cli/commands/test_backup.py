"""`parley backup` and `restore`: consistent beside a writer; a state never goes backwards."""

import pytest

from tests.harness.deployed_folder import BACKUP, RESTORE, spend, state


@pytest.mark.parametrize("part", ["state", "all"])
def test_a_damaged_backup_is_refused_and_leaves_nothing(parley, place, part):
    spend(place.folder)
    assert parley(*BACKUP).code == 0
    path = place.folder / "north.backup"
    content = bytearray(path.read_bytes())
    content[-12000:-11000] = b"?" * 1000
    path.write_bytes(content if part == "state" else b"no backup")
    state(place).unlink()
    done = parley(*RESTORE)
    assert done.code == 3
    assert "damaged" in done.err
    assert not state(place).exists()
