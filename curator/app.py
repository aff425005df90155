"""The curator put together: it makes a running server of settings. All wiring is here."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from common.crypto.identities.identity import Identity
from common.service.alerts import Hook
from common.service.metrics import Sample, serving_metrics
from common.service.process import Clock, alone_in, logging_failures, stamp
from common.service.settings import asking
from common.study.document import Study
from common.wire.pki.certificates import Role, expiry_warning
from common.wire.pki.credentials import CredentialFiles, ExpiryWatch
from curator.context import FinishedStudy
from curator.dashboard.serving import serving_dashboard
from curator.dashboard.site import WatchedService
from curator.metrics import curator_samples
from curator.server.connections import Connections
from curator.server.service import CuratorServer
from curator.settings import CuratorSettings, open_store, priors
from curator.studies import Studies
from curator.upkeep import Alerting, Upkeep, look

logger = logging.getLogger(__name__)

_LOOK_EVERY_S = 1.0  # for what `parley curator study` writes into the file


def propose(settings: CuratorSettings, study: Study, *, clock: Clock) -> None:
    """Offer a study to its parties; a running curator notices it within a second."""
    priors(settings).begin(study)  # refuses a study that could never be run
    with open_store(settings, begin=True) as store:
        store.propose(study, at=stamp(clock()))


def serve_and_publish(
    settings: CuratorSettings,
    *,
    file_format: str,
    stopping: threading.Event,
    clock: Clock,
    software: str,
    started: Callable[[int], None] = lambda port: None,
) -> None:
    """Run a curator that signs its releases and puts them where its settings say; see `serve`."""
    from curator.publisher import curator_signer, publish  # only who serves draws rows

    place = settings.releases.absolute()  # `study status` may be asked from another folder
    signer = curator_signer(settings.keys, asking(settings.passphrase_file, {}))
    known = priors(settings)
    serve(
        settings,
        publish=lambda outcome: publish(
            outcome, place, file_format=file_format, signer=signer, priors=known
        ),
        stopping=stopping,
        clock=clock,
        software=software,
        identity=None if signer is None else signer.identity,
        started=started,
    )


def serve(
    settings: CuratorSettings,
    *,
    publish: Callable[[FinishedStudy], Path],
    stopping: threading.Event,
    clock: Clock,
    software: str,
    identity: Identity | None = None,
    started: Callable[[int], None] = lambda port: None,
) -> None:
    """Run a curator until it is told to stop.

    `publish` makes the release of a study that has every result, and returns where it is.
    `identity` signs releases; the curator proves it to parties. `started` is called with the port
    when calls are taken.

    Raises:
        InputError: the address, the keys or the state cannot be used, or another curator has it.
    """
    files = CredentialFiles.in_folder(settings.keys, Role.CURATOR)
    warning = expiry_warning(files.load().certificate, at=clock())
    if warning is not None:
        logger.warning("%s", warning)
    with (
        alone_in(settings.folder, service="curator"),
        open_store(settings, begin=True) as store,
        ThreadPoolExecutor(1, "release") as background,
        ThreadPoolExecutor(1, "alert") as alerts,
    ):
        known = priors(settings)
        studies = Studies(
            store, begin=known.begin, publish=publish, clock=clock, prior_of=known.path,
            later=lambda task: background.submit(task).add_done_callback(_log_failure),
        )  # fmt: skip
        store.check_at_start()
        studies.open()
        upkeep = Upkeep(studies, settings.waiting_limits)
        hook = Hook(webhook=settings.webhook, command=settings.on_event)
        alerting = Alerting(store, hook, alerts, contacts=settings.contacts)
        server = CuratorServer(
            studies,
            files=files,
            revoked=settings.keys / "revoked.txt",
            listen=settings.listen,
            clock=clock,
            software=software,
            identity=identity,
            most_streams=settings.most_streams,
            frame_timeout_s=settings.frame_timeout_s,
            reflection=settings.reflection,
        )
        started(server.start())
        watched = WatchedService(
            studies=studies, calls=server.calls, files=files, clock=clock, software=software,
            settings=settings, identity=identity,
        )  # fmt: skip
        try:
            with _watched(watched, server.connections):
                watch = ExpiryWatch(clock)
                while not stopping.wait(_LOOK_EVERY_S):
                    look(studies, upkeep, alerting)
                    watch.look(files)
        finally:
            server.stop(grace_s=settings.grace_s)
            with logging_failures(logger, "when parties called last is not on disk"):
                upkeep.write_calls()


@contextmanager
def _watched(service: WatchedService, connections: Connections) -> Iterator[None]:
    """Serve the metrics and the dashboard that the settings ask for."""

    def samples() -> Iterator[Sample]:
        yield from curator_samples(
            service.studies.store, service.calls, service.files,
            deadline=service.settings.step_deadline, now=service.clock(),
        )  # fmt: skip
        yield from connections.samples()

    with serving_metrics(service.settings.metrics, samples), serving_dashboard(service):
        yield


def _log_failure(call: Future[None]) -> None:
    """Log what a task in the background raised: a defect, which must not pass unseen."""
    error = call.exception()
    if error is not None:
        logger.error("a task in the background failed", exc_info=error)
