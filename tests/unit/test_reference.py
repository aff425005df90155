"""docs/reference is what `make docs` would write; a change of the code that forgot it fails."""

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def generator():
    spec = importlib.util.spec_from_file_location("docs_generate", ROOT / "docs" / "generate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def pages(generator):
    """Make every page, once."""
    return {name: make() for name, make in generator.PAGES.items()}


def test_the_reference_is_up_to_date(pages):
    assert pages == {name: (ROOT / "docs" / "reference" / name).read_text() for name in pages}


def test_a_stale_page_is_noticed_and_made_again(generator, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(generator, "REFERENCE", tmp_path / "reference")
    monkeypatch.setattr(generator, "PAGES", {"cli.md": lambda: "a page"})
    assert generator.main(["--check"]) == 1
    assert generator.main([]) == 0
    assert generator.main(["--check"]) == 0
    (tmp_path / "reference" / "cli.md").write_text("an older one")
    assert generator.main(["--check"]) == 1
    assert "make docs" in capsys.readouterr().err


def test_every_option_of_a_command_is_on_the_page(generator, pages):
    """In its own lines, among the shared ones, or among the terms of a study."""
    page = pages["cli.md"] + pages["configuration.md"]
    for name in ("demo", "simulate", "keys", "curator", "estimate"):
        for words, command in generator.commands_below([name], generator.cli.load_command(name)):
            assert f"### {' '.join(['parley', *words])}" in page
            for line in generator.parameter_lines(command, "option"):
                assert re.split("[ ,=]", line.split("`")[1])[0] in page, line


def test_an_option_that_commands_share_is_described_once(pages):
    assert pages["cli.md"].count("The sheet of an Excel file.") == 1


def test_a_setting_without_a_description_is_refused(generator):
    from dataclasses import dataclass

    @dataclass
    class Bare:
        """No attributes are described."""

        size: int = 1

    with pytest.raises(SystemExit, match=r"Bare\.size"):
        list(generator.described(Bare))
