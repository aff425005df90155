"""The two services as processes of their own: `python -m tests.harness.services ROLE FILE`."""

import json
import os
import sys
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from common.privacy.randomness import SeededRandomSource
from common.service.process import log_to, stopping_on_signals
from curator import app as curator_app
from party import app as party_app


def clock():
    return datetime.now(UTC)


def serve_curator(file):
    settings = curator_app.curator_settings(file, os.environ).values

    def publish(outcome):
        settings.releases.mkdir(exist_ok=True)
        path = settings.releases / f"{outcome.study.digest.hex()[:16]}.json"
        steps = [[step.name, {k: str(v) for k, v in step.costs.items()}] for step in outcome.steps]
        scratch = path.with_suffix(".new")
        scratch.write_text(json.dumps({"steps": steps, "model": outcome.model.as_json()}))
        scratch.replace(path)
        return path

    def started(port):
        scratch = settings.folder / "port.new"
        scratch.write_text(str(port))
        scratch.replace(settings.folder / "port")

    with stopping_on_signals() as stopping:
        curator_app.serve(
            settings, publish=publish, stopping=stopping, clock=clock, software="test",
            started=started,
        )  # fmt: skip


def join_party(file):
    settings = party_app.party_settings(file, os.environ)
    source = party_app.source_settings(settings, file, os.environ)
    with (
        stopping_on_signals() as stopping,
        party_app.alone(settings.values),
        party_app.party_context(settings.values, source, clock=clock) as house,
    ):
        manager = party_app.session_manager(
            settings.values, house, environment=os.environ, stopping=stopping, software="test"
        )
        with party_app.metrics(settings.values, house):
            manager.run(once=True)


def draw_keys_from(seed):
    """As two runs must draw the same keys to be compared."""
    for app in (curator_app, party_app):
        app.OsRandomSource = partial(SeededRandomSource, seed)


if __name__ == "__main__":
    log_to()
    if seed := os.environ.pop("PARLEY_TEST_SEED", ""):
        draw_keys_from(seed)
    role, path = sys.argv[1:]
    {"curator": serve_curator, "party": join_party}[role](Path(path))
