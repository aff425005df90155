"""`parley curator`: run a consortium's coordinator. Its studies are in `curator_study`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from common.files import replace
from common.service.process import log_to, software, system_clock
from common.service.reloading import reloading
from curator import app as curator_app
from curator.settings import CuratorSettings, curator_settings
from parley.cli.commands import curator_study, new_app
from parley.cli.options import Config, LogLevel, Metrics, OutputFormat, StopWithStdin

app = new_app("Run the coordinator of a consortium, and put studies in front of its parties.")
app.add_typer(curator_study.app, name="study")


@app.command()
def serve(
    *,
    config: Config = None,
    folder: Annotated[Path | None, typer.Option(help="Where the state is kept.")] = None,
    keys: Annotated[
        Path | None, typer.Option(help="The folder that `parley keys init` made.")
    ] = None,
    releases: Annotated[Path | None, typer.Option(help="Where finished releases go.")] = None,
    listen: Annotated[
        str | None, typer.Option(help="Address and port; port 0 takes a free one.")
    ] = None,
    metrics: Metrics = None,
    dashboard: Annotated[
        bool | None, typer.Option(help="Serve a page for the operator, too.")
    ] = None,
    dashboard_listen: Annotated[
        str | None,
        typer.Option(
            help="The dashboard's address and port; TLS unless it is loopback. [127.0.0.1:7444]"
        ),
    ] = None,
    log_level: LogLevel = None,
    format: OutputFormat = "csv",  # noqa: A002
    port_file: Annotated[
        Path | None, typer.Option(help="Write the port here when calls are taken.")
    ] = None,
    stop_with_stdin: StopWithStdin = False,
) -> None:
    """Serve until SIGTERM or Ctrl-C, then finish the calls under way. Logs are JSON on stderr.

    State survives a crash at any moment: start it again and the studies go on. One curator runs on
    a folder at a time. SIGHUP reads the settings again.
    """
    flags = {
        "folder": folder, "keys": keys, "releases": releases, "listen": listen,
        "metrics": metrics, "log_level": log_level, "dashboard": dashboard,
        "dashboard_listen": dashboard_listen,
    }  # fmt: skip

    def started(port: int) -> None:
        if port_file is not None:
            replace(port_file, f"{port}\n".encode())

    def read() -> CuratorSettings:
        return curator_settings(config, os.environ, flags).values

    with reloading(read, with_stdin=stop_with_stdin) as rounds:
        for settings, stopping in rounds:
            log_to(level=settings.log_level)
            curator_app.serve_and_publish(
                settings,
                file_format=format,
                stopping=stopping,
                clock=system_clock,
                software=software(),
                started=started,
            )
