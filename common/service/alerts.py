"""Tells an operator of an event by a webhook, a command, or both.

A webhook is sent the event as one JSON object (POST). A command is run without a shell and is given
the object on its standard input: `sendmail`, a pager, a script. Events hold public facts only: the
study, what happened, which parties it waits for.
"""

from __future__ import annotations

import json
import logging
import subprocess
import threading
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from common.errors import InputError, LocalError

logger = logging.getLogger(__name__)

_WEBHOOK_S, _COMMAND_S = 10.0, 60.0

Event = Mapping[str, object]  # as JSON has it


def check_webhook(key: str, url: str) -> None:
    if url and not url.startswith(("https://", "http://")):
        raise InputError(f"{key}: {url!r} is not an address. Write https://HOST/PATH")


@dataclass(frozen=True, slots=True, kw_only=True)
class Hook:
    """Where events go."""

    webhook: str = ""  # the address that is sent every event; empty for none
    command: Path | None = None  # the program that is given every event; None for none

    def __bool__(self) -> bool:
        return bool(self.webhook) or self.command is not None

    def tell(self, event: Event) -> None:
        """Hand an event over; a LocalError, if it is not taken, names neither address nor event."""
        body = json.dumps(dict(event), ensure_ascii=False).encode()
        if self.webhook:
            self._post(body)
        if self.command is not None:
            self._run(self.command, body)

    def _post(self, body: bytes) -> None:
        request = urllib.request.Request(  # noqa: S310  # the scheme is checked with the settings
            self.webhook, data=body, headers={"Content-Type": "application/json; charset=utf-8"}
        )
        try:
            with urllib.request.urlopen(request, timeout=_WEBHOOK_S):  # noqa: S310
                pass
        except (OSError, ValueError) as error:  # an answer other than 2xx is an OSError, too
            raise LocalError(f"the webhook did not take an event: {error}") from error

    def _run(self, command: Path, body: bytes) -> None:
        try:
            subprocess.run(  # noqa: S603  # the operator's own program
                [command], input=body, check=True, timeout=_COMMAND_S,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )  # fmt: skip
        except (OSError, subprocess.SubprocessError) as error:
            raise LocalError(f"{command} did not take an event: {error}") from error

    def tell_later(self, event: Event) -> None:
        """Hand an event over from a thread of its own; a failure is logged."""
        if self:
            threading.Thread(target=self._try, args=(event,), name="alert", daemon=True).start()

    def _try(self, event: Event) -> None:
        try:
            self.tell(event)
        except LocalError as error:
            logger.warning("%s", error)
