"""The published sums as a file."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import InputError
from common.release.contents import FolderContents
from common.release.results import RESULTS, read_results, write_results


@given(st.lists(st.binary(max_size=50), max_size=5))
def test_results_come_back_and_are_refused_when_cut(tmp_path_factory, results):
    path = tmp_path_factory.mktemp("results") / RESULTS
    write_results(path, results)
    data = path.read_bytes()
    assert read_results(FolderContents(path.parent)) == tuple(results)
    for wrong in (data[:-1], data + b"x", b"x" + data):
        path.write_bytes(wrong)
        with pytest.raises(InputError, match=RESULTS):
            read_results(FolderContents(path.parent))
