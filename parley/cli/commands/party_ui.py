"""`parley party ui`: the owner's page, in a browser on the same machine."""

from __future__ import annotations

import functools
import os
import sys
import threading
from pathlib import Path
from typing import Annotated

import typer

from common.service.process import log_to, running_in, software, stopping_on_signals, system_clock
from common.study.document import Study
from parley.cli import console
from parley.cli.options import Config
from parley.cli.passphrases import passphrase_in
from party import app as party_app
from party.app import party_settings, source_settings
from party.client.dialer import Dialer
from party.ui.inbox import OwnerInbox
from party.ui.site import serving_ui


def ui(
    *,
    config: Config = None,
    study: Annotated[
        list[Path] | None, typer.Option(help="A study.toml to decide about; may be given again.")
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 0,
    offline: Annotated[bool, typer.Option("--offline", help="Do not ask the curator.")] = False,
) -> None:
    """Review and decide in a browser; see the ledger and what left. On this machine only.

    Prints the address to open, which is the key to the page. Runs until Ctrl-C.
    """
    settings = party_settings(config, os.environ)
    source = source_settings(settings, config, os.environ)
    studies = [Study.load(path) for path in study or ()]
    log_to(level=settings.values.log_level)
    with (
        stopping_on_signals() as stopping,
        party_app.party_context(
            settings.values,
            source,
            clock=system_clock,
            passphrase=passphrase_in(settings.values.passphrase_file),
        ) as house,
    ):
        address = party_app.address_of(settings.values, environment=os.environ, software=software())
        dialer = Dialer(address, system_clock)
        node = functools.partial(running_in, settings.values.folder)
        inbox = OwnerInbox(house, studies, dial=None if offline else dialer.dial, node=node)
        with serving_ui(inbox, port=port) as printed:
            asking = threading.Thread(target=inbox.ask, name="ask", daemon=True)
            asking.start()
            console.result(printed)
            sys.stdout.flush()  # it may be read by a script that waits for it
            stopping.wait()
        dialer.hang_up()
        asking.join()
