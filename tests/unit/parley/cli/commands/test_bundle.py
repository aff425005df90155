"""`parley bundle`: nothing is overwritten unasked."""

import zipfile


def test_a_bundle_is_not_overwritten_unasked(parley, copies):
    assert parley("bundle", "one", "--out", "one.zip").code == 0
    before = (copies / "one.zip").read_bytes()
    assert parley("bundle", "one", "--out", "one.zip").code == 3
    assert parley("bundle", "one", "--out", "one.zip", "--overwrite", "--json").code == 0
    assert (copies / "one.zip").read_bytes() == before
    assert parley("bundle", "one.zip", "--out", "two.zip").code == 3
    assert parley("bundle", "nowhere", "--out", "two.zip").code == 3
    with zipfile.ZipFile(copies / "one.zip") as archive:
        archive.extractall(copies / "unpacked")
    assert parley("verify", "unpacked/release").code == 0
