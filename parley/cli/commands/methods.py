"""`parley methods`: how a synthetic table can be made, and what may be set about each way."""

from __future__ import annotations

from common.methods.registry import methods
from common.study.method import Method
from parley.cli.commands import new_app
from parley.cli.result import Result, command, listed

app = new_app()


@command(app, "methods")
def list_methods() -> Result:
    """List the methods of studies with every setting, its default and what it means.

    A setting is given as `--set KEY=VALUE` to `parley simulate` and `parley curator study new`, or
    in the table of study.toml that has the method's name.
    """
    return listed(map(_method, methods().values()))


def _method(method: Method) -> Result:
    settings = {
        key: {"default": setting.default, "meaning": setting.meaning}
        for key, setting in method.settings.items()
    }
    lines = [f"{method.name}: {method.summary}"]
    for key, setting in settings.items():
        lines += [f"  --set {key}={setting['default']}", f"      {setting['meaning']}"]
    return Result({"name": method.name, "summary": method.summary, "settings": settings}, lines)
