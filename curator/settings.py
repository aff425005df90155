"""What the settings of a curator are, and where its files are."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from common.errors import InputError
from common.files import make_private_folder
from common.privacy.randomness import OsRandomSource
from common.release.prior import Priors
from common.service import state
from common.service.alerts import check_webhook
from common.service.migrations import StateOwner as OfService
from common.service.process import check_level
from common.service.settings import (
    LoadedSettings,
    Texts,
    check_address,
    check_seconds,
    check_whole,
    given_passphrase,
    read_settings,
)
from curator.dashboard.sign_on import Provider
from curator.store.store import Store
from curator.upkeep import WaitingLimits

PREFIX = "PARLEY_CURATOR_"
STORE = state.FILES[OfService.CURATOR]
MOST_STREAMS = 10_000  # each is a thread
LONGEST_DEADLINE_S = 366 * 24 * 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class CuratorSettings:
    """How a curator runs.

    Attributes:
        folder: where its state is kept.
        keys: the folder of its keys, as `parley keys init` makes it.
        releases: where finished releases go.
        listen: address and port.
        passphrase_file: a file whose first line protects Paillier keys in the state, on top of its
            mode, and opens the identity that signs studies; only the owner may be able to read it.
        most_streams: how many parties may wait for work at a time, over all studies; 1 to 10,000.
        frame_timeout_s: how long a party may take to send or to take a frame of 1 MiB; a call that
            takes longer is ended.
        grace_s: how long calls under way may take when the curator is stopped; at most a day.
        step_deadline_s: how long a step may wait for parties before its study is overdue: the log,
            `study status`, the metrics and the dashboard say so. A study that may miss these
            parties (may_miss) goes on without them.
        step_warning_s: how long a step may wait for parties before the log and the hooks say so.
        end_overdue: whether an overdue study ends; what it cost so far stays charged.
        webhook: an address that is sent a JSON object (POST) when a study waits, is overdue, is
            done, is refused or failed; empty for none.
        on_event: a program that is given the same object on its standard input.
        contacts: whom to ask at an owner, by its name: an address for mail, or other words. Events
            of a study that waits for the owner have it.
        log_level: debug, info, warning or error.
        metrics: address and port of the metrics; empty for none.
        reflection: whether callers with a certificate may list the calls there are, as gRPC tools
            do; for development.
        dashboard: whether to serve a page for the operator, too.
        dashboard_listen: its address and port; TLS is spoken unless the address is loopback.
        dashboard_actions: whether a study can be given up there, or an owner declared missing;
            otherwise it only shows.
        dashboard_offers: whether a study can be renewed there, or offered again without an owner.
            The curator's identity signs it, so who can log in can use that identity.
        dashboard_operators: a list of fingerprints of client certificates that may log in without
            the token, in the form of the revocation list.
        dashboard_oidc: single sign-on by OpenID Connect: issuer, client_id, and who may log in,
            subjects or groups, separated by commas; also groups_claim and scope. Needs
            parley[oidc].
        dashboard_oidc_secret: a file with the client's secret, which only its owner can read; none
            for a public client.
    """

    folder: Path
    keys: Path
    releases: Path
    listen: str = "0.0.0.0:7443"
    passphrase_file: Path | None = None
    most_streams: int = 200
    frame_timeout_s: float = 60.0
    grace_s: float = 20.0
    step_deadline_s: float = 3600.0
    step_warning_s: float = 600.0
    end_overdue: bool = False
    webhook: str = ""
    on_event: Path | None = None
    contacts: Texts | None = None
    log_level: str = "info"
    metrics: str = ""
    reflection: bool = False
    dashboard: bool = False
    dashboard_listen: str = "127.0.0.1:7444"
    dashboard_actions: bool = False
    dashboard_offers: bool = False
    dashboard_operators: Path | None = None
    dashboard_oidc: Texts | None = None
    dashboard_oidc_secret: Path | None = None

    @property
    def waiting_limits(self) -> WaitingLimits:
        return WaitingLimits(
            warning=dt.timedelta(seconds=self.step_warning_s),
            deadline=self.step_deadline,
            end_overdue=self.end_overdue,
        )

    @property
    def step_deadline(self) -> dt.timedelta:
        return dt.timedelta(seconds=self.step_deadline_s)

    @property
    def oidc(self) -> Provider | None:
        """Who signs users of the dashboard on; None for no one."""
        table = self.dashboard_oidc
        return None if table is None else Provider.of(table, self.dashboard_oidc_secret)

    def __post_init__(self) -> None:
        """Refuse settings that cannot work, before anything is opened."""
        check_address("listen", self.listen)
        check_address("dashboard_listen", self.dashboard_listen)
        if self.metrics:
            check_address("metrics", self.metrics)
        check_whole("most_streams", self.most_streams, most=MOST_STREAMS)
        check_seconds("grace_s", self.grace_s)
        check_seconds("frame_timeout_s", self.frame_timeout_s)
        check_seconds("step_deadline_s", self.step_deadline_s, most=LONGEST_DEADLINE_S)
        check_seconds("step_warning_s", self.step_warning_s, most=LONGEST_DEADLINE_S)
        check_webhook("webhook", self.webhook)
        _ = self.oidc  # refused now, not at the first login
        check_level(self.log_level)


def curator_settings(
    file: Path | None, environment: Mapping[str, str], flags: Mapping[str, object] | None = None
) -> LoadedSettings[CuratorSettings]:
    """Read defaults, then the settings file, then `PARLEY_CURATOR_*`, then flags."""
    return read_settings(
        CuratorSettings, prefix=PREFIX, file=file, environment=environment, flags=flags or {}
    )


@contextmanager
def open_store(settings: CuratorSettings, *, begin: bool = False) -> Iterator[Store]:
    """Open the curator's state for a block; InputError if there is none, and no `begin`."""
    if not state.is_there(settings.folder, OfService.CURATOR):
        if not begin:
            raise InputError(
                f"{settings.folder / STORE}: there are no studies of a curator. They begin with "
                "`parley curator study add`, or with `parley curator serve`. If there were any, "
                "restore them: `parley restore FILE`"
            )
        make_private_folder(settings.folder)
    passphrase = given_passphrase(settings.passphrase_file, {})
    with state.opened(settings.folder, OfService.CURATOR) as database:
        yield Store(database, OsRandomSource(), passphrase=passphrase)


def priors(settings: CuratorSettings) -> Priors:
    """Return the earlier releases that studies build on."""
    return Priors(settings.folder / "priors")
