"""The settings of a curator: what is wrong with one is said with its place."""

import re

import pytest

from common.errors import InputError
from curator.settings import curator_settings


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("grace_s = inf", "grace_s: inf is not a usable duration"),
        (f"grace_s = {10**400}", "grace_s: expected float"),
        ('dashboard_listen = "x"', "dashboard_listen: expected host:port, got 'x'"),
    ],
)
def test_what_is_wrong_with_a_value_is_said_with_the_file_it_stands_in(tmp_path, line, words):
    file = tmp_path / "curator.toml"
    file.write_text(f'folder = "a"\nkeys = "k"\nreleases = "r"\n{line}\n')
    with pytest.raises(InputError, match=re.escape(f"{file}: {words}")):
        curator_settings(file, {})


def test_flags_win_over_the_environment_and_that_over_the_file(tmp_path):
    file = tmp_path / "curator.toml"
    file.write_text('folder = "a"\nkeys = "k"\nreleases = "r"\ngrace_s = 1.0\nmost_streams = 7\n')
    variables = {"PARLEY_CURATOR_GRACE_S": "2.0", "PARLEY_CURATOR_MOST_STREAMS": "8"}
    found = curator_settings(file, variables, {"grace_s": 3.0, "most_streams": None}).values
    assert (found.grace_s, found.most_streams) == (3.0, 8)
    assert curator_settings(file, {}).values.most_streams == 7
    file.write_text('folder = "a"\nkeys = "k"\nreleases = "r"\n[source]\nkind = "csv"\n')
    with pytest.raises(InputError, match="source"):  # a curator has no rows
        curator_settings(file, {})


def test_contacts_are_a_table_or_a_variable(tmp_path):
    file = tmp_path / "curator.toml"
    begin = 'folder = "a"\nkeys = "k"\nreleases = "r"\n'
    file.write_text(f'{begin}[contacts]\nsouth = "ops@south.example"\n"north 1" = "4711"\n')
    contacts = {"south": "ops@south.example", "north 1": "4711"}
    assert curator_settings(file, {}).values.contacts == contacts
    variable = {"PARLEY_CURATOR_CONTACTS": "south = a@b.example, north 1=4711,"}
    assert curator_settings(file, variable).values.contacts["south"] == "a@b.example"
    file.write_text(begin)
    assert curator_settings(file, {}).values.contacts is None


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("contacts = 3", "expected a table of texts, got 3"),
        ("[contacts]\nsouth = 3", "'south' has 3. Write one line of text"),
        ('[contacts]\nsouth = ""', "Write one line"),
        ('[contacts]\nsouth = "a\\nBcc: b"', "Write one line"),
    ],
)
def test_a_contact_is_one_line_of_text(tmp_path, lines, words):
    file = tmp_path / "curator.toml"
    file.write_text(f'folder = "a"\nkeys = "k"\nreleases = "r"\n{lines}\n')
    with pytest.raises(InputError, match=re.escape(words)):
        curator_settings(file, {})


def test_single_sign_on_is_read_with_the_settings_and_refused_with_them(tmp_path):
    file = tmp_path / "curator.toml"
    plain = 'folder = "a"\nkeys = "k"\nreleases = "r"\ndashboard = true\n'
    table = '[dashboard_oidc]\nissuer = "https://a.example"\nclient_id = "parley"\n'
    file.write_text(f'{plain}dashboard_oidc_secret = "s"\n{table}groups = "one, two"\n')
    provider = curator_settings(file, {}).values.oidc
    assert (provider.groups, provider.secret_file) == ({"one", "two"}, tmp_path / "s")
    file.write_text(plain + table)
    with pytest.raises(InputError, match=r"dashboard_oidc: .* every user of the issuer"):
        curator_settings(file, {})
