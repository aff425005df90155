"""The examples of docs/reference/python.md run, and no public name is left out."""

import re
from pathlib import Path

import parley as package

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "python.md"


def examples():
    return re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)


def test_the_examples_run(parley, monkeypatch, tmp_path):
    assert parley("demo", "--tables", "play", "--rows", "2000").code == 0
    monkeypatch.chdir(tmp_path / "play")
    assert len(examples()) > 20
    known = {}
    for example in examples():
        exec(compile(example, "python.md", "exec"), known)  # noqa: S102  # what the page says
    assert len(known["rows"]) == 1000
    assert known["fitted"].schema.digest() == known["schema"].digest()


def test_every_public_name_is_on_the_page():
    words = PAGE.read_text()
    for name in package.__all__:
        assert re.search(rf"\b{name}\b", words), name
