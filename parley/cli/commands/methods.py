"""`parley methods`: how a synthetic table can be made, and what may be set about each way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from common.methods.registry import methods
from parley.cli.commands import new_app
from parley.cli.result import Result, ResultList, command

app = new_app()


@dataclass(frozen=True)
class KnownMethod(Result):
    """A method of studies."""

    name: str
    summary: str
    settings: Mapping[str, Mapping[str, str]]  # by key: default and meaning

    def lines(self) -> Iterator[str]:
        yield f"{self.name}: {self.summary}"
        for key, setting in self.settings.items():
            yield f"  --set {key}={setting['default']}"
            yield f"      {setting['meaning']}"


@command(app, "methods")
def list_methods() -> ResultList:
    """List the methods of studies with every setting, its default and what it means.

    A setting is given as `--set KEY=VALUE` to `parley simulate` and `parley curator study new`, or
    in the table of study.toml that has the method's name.
    """
    known = (
        KnownMethod(
            method.name,
            method.summary,
            {
                key: {"default": setting.default, "meaning": setting.meaning}
                for key, setting in method.settings.items()
            },
        )
        for method in methods().values()
    )
    return ResultList(tuple(known))
