"""Whether a state is there is found out without making one."""

import pytest

from common.errors import InputError
from common.service.database import Database
from common.service.migrations import StateOwner
from common.service.state import FILES, has_file, is_there, opened


@pytest.mark.parametrize("service", StateOwner)
def test_looking_makes_nothing(tmp_path, service):
    folder = tmp_path / "state"
    assert not is_there(folder, service)
    assert not folder.exists()
    folder.mkdir()
    (folder / FILES[service]).touch()
    assert not has_file(folder, service)
    opened(folder, service).close()
    assert is_there(folder, service)


def test_the_folder_and_the_file_of_the_other_service_are_refused(tmp_path):
    with Database(tmp_path / FILES[StateOwner.CURATOR]) as database:
        database.add_tables("CREATE TABLE party (name TEXT) STRICT;")
    with pytest.raises(InputError, match="this is the state folder of a curator"):
        is_there(tmp_path, StateOwner.PARTY)
    (tmp_path / FILES[StateOwner.CURATOR]).rename(tmp_path / FILES[StateOwner.PARTY])
    with pytest.raises(InputError, match="not the state of a party, but of a curator"):
        opened(tmp_path, StateOwner.PARTY)
