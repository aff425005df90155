"""The mark beside the keys: a ledger that was begun once is missed when it is gone."""

import pytest

from common.errors import InputError
from party.ledger import Ledger
from party.state import MARK, STATE, begin_anew, open_state, reading, require_not_lost


@pytest.fixture
def folders(tmp_path):
    (tmp_path / "keys").mkdir()
    return tmp_path / "state", tmp_path / "keys"


def test_a_ledger_is_begun_once(folders):
    folder, keys = folders
    with pytest.raises(InputError, match=r"there is no ledger. It begins with"):
        open_state(folder, keys=keys)
    assert not folder.exists()
    open_state(folder, keys=keys, begin=True).close()
    open_state(folder, keys=keys, begin=True).close()
    assert (keys / MARK).read_text().count(str(folder)) == 1
    (folder / STATE).unlink()
    for begin in (False, True):
        with pytest.raises(InputError, match=r"is lost .* `parley restore FILE`.*--begin-anew"):
            open_state(folder, keys=keys, begin=begin)
    begin_anew(folder, keys=keys)
    require_not_lost(folder, keys=keys)
    assert (keys / MARK).read_text().count(str(folder)) == 2


def test_a_look_at_nothing_leaves_nothing(folders):
    folder, keys = folders
    with reading(folder, keys=keys) as database:
        assert Ledger(database).entries() == []
    assert not folder.exists()
    assert not any(keys.iterdir())


def test_keys_that_cannot_be_written_have_no_mark_and_the_node_starts(folders):
    folder, keys = folders
    keys.rmdir()  # as for a service that may not write there
    open_state(folder, keys=keys, begin=True).close()
    open_state(folder, keys=keys).close()
