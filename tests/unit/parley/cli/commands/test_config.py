"""`parley config show`: settings, and where they came from."""

from tests.harness.deployed_folder import HUB, NORTH


def test_settings_are_shown_with_where_they_came_from(parley, place, monkeypatch):
    monkeypatch.setenv("PARLEY_PARTY_CURATOR", "hub.example:7443")
    told = parley("config", "show", "party", "--json", *NORTH).json
    assert told["curator"] == {
        "value": "hub.example:7443",
        "from": "the environment (PARLEY_PARTY_*)",
    }
    assert told["folder"]["from"] == "north/party.toml"
    assert told["log_level"] == {"value": "info", "from": "default"}
    assert (
        "listen = 127.0.0.1:0  # hub/curator.toml" in parley("config", "show", "curator", *HUB).out
    )


def test_an_unknown_setting_is_an_error(parley, place):
    path = place.folder / "hub" / "curator.toml"
    path.write_text(path.read_text() + "lissten = 1\n")
    done = parley("config", "show", "curator", *HUB)
    assert done.code == 3
    assert "lissten" in done.err
