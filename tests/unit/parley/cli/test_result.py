"""What a command returns is printed in one place: for people, or for scripts."""

import datetime as dt
import json
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from pathlib import Path
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from common.errors import InputError
from parley.cli.result import Result, command, listed, plain, show


def weighed(file=Path("cake"), grams=Fraction(1, 3), scale="kitchen"):
    def require():
        if grams > 1000:
            raise InputError("too heavy")

    return Result(
        {"file": file, "grams": grams},
        [f"{file}: {grams} g on the {scale} scale"],
        warnings=["it is heavy"],
        remarks=["weigh it again"],
        require=require,
    )


CAKE = weighed()


def test_people_read_lines_and_what_follows_them(capsys):
    show(CAKE, as_json=False)
    printed = capsys.readouterr()
    assert printed.out == "cake: 1/3 g on the kitchen scale\n"
    assert printed.err == "it is heavy\nweigh it again\n"


def test_scripts_read_the_form(capsys):
    show(CAKE, as_json=True)
    printed = capsys.readouterr()
    assert json.loads(printed.out) == {"file": "cake", "grams": "1/3"}
    assert printed.err == "it is heavy\nweigh it again\n"


@pytest.mark.parametrize("as_json", [False, True])
def test_a_result_that_fails_is_printed_first(capsys, as_json):
    with pytest.raises(InputError):
        show(weighed(grams=Fraction(2000)), as_json=as_json)
    assert "2000" in capsys.readouterr().out


def test_results_are_listed():
    both = listed([CAKE, CAKE], empty="none")
    assert list(both.lines) == [*CAKE.lines] * 2
    assert both.form == [CAKE.form] * 2
    assert list(listed([], empty="none").lines) == ["none"]
    assert list(listed([]).lines) == []


def test_a_form_is_made_only_for_scripts(capsys):
    def refuse():
        raise InputError("name a file")

    show(Result(refuse, ["rows"]), as_json=False)
    assert capsys.readouterr().out == "rows\n"
    with pytest.raises(InputError, match="name a file"):
        show(Result(refuse, ["rows"]), as_json=True)


def test_json_alone_is_json_for_people_too(capsys):
    show(Result({"a": Fraction(1, 2)}), as_json=False)
    assert json.loads(capsys.readouterr().out) == {"a": "1/2"}


class Size(Enum):
    SMALL = "small"


class Told:
    def as_json(self):
        return {"when": dt.date(2026, 1, 31)}


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (None, None),
        (True, True),
        (1.5, 1.5),
        (Size.SMALL, "small"),
        (b"\x01\xff", "01ff"),
        (Path("a/b"), "a/b"),
        (Fraction(2, 6), "1/3"),
        ({Size.SMALL: (1, 2)}, {"Size.SMALL": [1, 2]}),
        ((Path("a"), [b""]), ["a", [""]]),
        (Told(), {"when": "2026-01-31"}),
        (dt.datetime(2026, 1, 31, 12, tzinfo=dt.UTC), "2026-01-31T12:00:00+00:00"),
    ],
)
def test_values_are_plain(value, written):
    assert plain(value) == written


@dataclass(frozen=True)
class Scale:
    scale: Annotated[str, typer.Option(help="Which.")] = "kitchen"
    tare: Annotated[int, typer.Option(help="What to take off.")] = 0


def test_a_command_prints_what_it_returns_and_takes_options_by_the_group():
    app = typer.Typer()

    def weigh(file: Path, *, on: Scale, grams: int = 5) -> Result:
        return weighed(file, Fraction(grams - on.tare), on.scale)

    command(app)(weigh)
    typed = ["cake", "--scale", "bath", "--tare", "2"]
    said = CliRunner().invoke(app, typed)
    assert said.stdout == "cake: 3 g on the bath scale\n"
    assert json.loads(CliRunner().invoke(app, [*typed, "--json"]).stdout)["grams"] == "3"
    assert weigh(Path("cake"), on=Scale()).form["grams"] == 5, "the function itself is as it was"
