"""A curator on a folder of `deployed_folder`, served by a thread of this process."""

import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from curator.app import serve
from curator.publisher import curator_signer, publish
from tests.harness.consortium import clock


@contextlib.contextmanager
def serving(settings, **changes):
    """Serve with these settings, changed; the port, which stays the same for the block."""
    settings = replace(settings, **changes)
    stopping, ready, ports = threading.Event(), threading.Event(), []
    signer = curator_signer(settings.keys, lambda path: "")

    def started(port):
        ports.append(port)
        ready.set()

    with ThreadPoolExecutor(1) as threads:
        running = threads.submit(
            serve, settings, stopping=stopping, clock=clock, software="parley", started=started,
            publish=lambda outcome: publish(outcome, settings.releases.absolute(), signer=signer),
        )  # fmt: skip
        running.add_done_callback(lambda _: ready.set())
        try:
            assert ready.wait(30)
            if not ports:
                running.result(timeout=1)
            yield ports[0]
        finally:
            stopping.set()
            running.result(timeout=60)
