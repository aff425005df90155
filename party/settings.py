"""What the settings of a party's node are, and where its files are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from common.errors import InputError
from common.service.alerts import check_webhook
from common.service.database import Database, OtherTablesError
from common.service.process import check_level
from common.service.settings import (
    LoadedSettings,
    check_address,
    check_seconds,
    check_whole,
    read_settings,
)
from party.sources.settings import OwnersTable, owners_table
from party.state import STATE, open_state

PREFIX = "PARLEY_PARTY_"
MOST_ATTEMPTS = 1_000_000_000
MOST_SEATS = 1_000  # each is a thread


@dataclass(frozen=True, slots=True, kw_only=True)
class PartySettings:
    """How a party's node runs. Its name is the one in its certificate.

    Attributes:
        folder: where ledger, journal and decisions are kept.
        keys: the folder of its keys, as `parley keys init` makes it.
        policy: the owner's policy file.
        curator: host and port of the curator.
        passphrase_file: a file whose first line opens the identity, if that is under a passphrase;
            only the owner may be able to read it.
        attempts: how many failures in a row are borne before giving up; at least 1.
        first_wait_s: after the first failure; doubled from one to the next. Durations are from
            0.001 to 86,400 seconds.
        longest_wait_s: between two attempts.
        look_again_s: how often to look for invitations and for the owner's decisions.
        seats: how many studies are worked on at a time; the rows of at most twice as many are held
            in memory. Studies that wait for their owner or for other parties take no seat.
        releases: where the node puts the releases of the studies that it finished; by default
            `releases` in its folder.
        fetch_releases: whether the node fetches and verifies them by itself.
        countersign: whether it countersigns those that its own records confirm.
        webhook: an address that is sent a JSON object (POST) when a study waits for its owner,
            cannot go on here, or ends; empty for none.
        on_event: a program that is given the same object on its standard input.
        log_level: debug, info, warning or error.
        metrics: address and port of the metrics; empty for none.
    """

    folder: Path
    keys: Path
    policy: Path
    curator: str
    passphrase_file: Path | None = None
    attempts: int = 1000
    first_wait_s: float = 0.5
    longest_wait_s: float = 30.0
    look_again_s: float = 5.0
    seats: int = 16
    releases: Path | None = None
    fetch_releases: bool = True
    countersign: bool = True
    webhook: str = ""
    on_event: Path | None = None
    log_level: str = "info"
    metrics: str = ""

    def __post_init__(self) -> None:
        """Refuse what cannot work before anything is opened."""
        check_address("curator", self.curator, least_port=1)
        if self.metrics:
            check_address("metrics", self.metrics)
        check_whole("attempts", self.attempts, most=MOST_ATTEMPTS)
        check_whole("seats", self.seats, most=MOST_SEATS)
        for key in ("first_wait_s", "longest_wait_s", "look_again_s"):
            check_seconds(key, getattr(self, key))
        check_webhook("webhook", self.webhook)
        check_level(self.log_level)


def party_settings(
    file: Path | None, environment: Mapping[str, str], flags: Mapping[str, object] | None = None
) -> LoadedSettings[PartySettings]:
    """Read defaults, then the settings file, then `PARLEY_PARTY_*`, then flags."""
    return read_settings(
        PartySettings, prefix=PREFIX, file=file, environment=environment, flags=flags or {},
        tables=("source",),
    )  # fmt: skip


def source_settings(
    settings: LoadedSettings[PartySettings], file: Path | None, environment: Mapping[str, str]
) -> OwnersTable:
    """Read the `[source]` of the settings file; paths are relative to that file."""
    if "source" not in settings.tables:
        raise InputError("settings: there is no [source]. Add one that says where the rows are")
    folder = Path() if file is None else file.parent
    return owners_table(settings.tables["source"], folder=folder, environment=environment)


def open_file(settings: PartySettings, *, begin: bool = False) -> Database:
    """Open ledger, journal and decisions; with `begin`, make them if there never were any."""
    return open_state(settings.folder, keys=settings.keys, begin=begin)


def open_ledger(settings: PartySettings, *, warn: Callable[[str], None]) -> Database:
    """Open the file of the ledger; only for reading if its tables are of an unknown version."""
    try:
        return open_file(settings)
    except OtherTablesError as error:
        warn(f"{error}. The ledger is only read")
        return Database(settings.folder / STATE, read_only=True, any_version=True)
