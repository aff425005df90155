"""What a node tells the other side that it is."""

from importlib import metadata

from common.service.version import software


def test_an_installation_says_its_version_and_a_bare_checkout_its_name(monkeypatch):
    assert software() == f"parley {metadata.version('parley')}"

    def missing(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", missing)
    assert software() == "parley"
