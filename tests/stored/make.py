"""Makes the stored folders of a version: run it in a checkout of that version.

`git archive TAG | tar x -C TREE; cd TREE; PYTHONPATH=TREE python .../tests/stored/make.py FOLDER`

A consortium of a curator (`hub`) and two owners, on loopback, run by the commands of that version.
Of its three studies one is done, one is running (the curator waits for east's answer, which never
left) and one is offered to the owners, who have not seen it. Beside it are releases of a single
owner and of a simulated study with a delta. The keys are made for it and protect nothing; their
certificates are valid for a century, because tests use them as long as the version is read.

Pack FOLDER as `tests/stored/VERSION.tar.xz`; `test_stored_versions.py` opens it.
"""

import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, suppress
from pathlib import Path

import numpy as np

from common.crypto.key_files import load_identity
from common.wire.pki import keyring
from tests.harness.consortium import authority, enrolled

OWNERS = ("north", "east")
ROWS = 40
CENTURY = 36_500  # days
SCHEMA = """
[[attribute]]
name = "sex"
kind = "categorical"
values = ["Female", "Male"]
[[attribute]]
name = "smoker"
kind = "boolean"
[[attribute]]
name = "age"
kind = "integer"
min = 0
max = 79
bins = 4
"""
CURATOR = """
folder = "state"
keys = "keys"
releases = "releases"
listen = "127.0.0.1:{port}"
"""
PARTY = """
folder = "state"
keys = "keys"
policy = "policy.toml"
curator = "127.0.0.1:{port}"
first_wait_s = 0.05
longest_wait_s = 0.5
look_again_s = 0.1
[source]
kind = "csv"
path = "rows.csv"
"""
POLICY = """
[budget]
epsilon_per_study = "1"
epsilon_in_total = "4"
[study]
signers = ["{signer}"]
[approval]
automatic = true
"""
SERVICE = "import sys; from parley.cli.main import main; sys.exit(main())"


def parley(*words):
    """Run a command; return what it prints."""
    done = subprocess.run(
        [sys.executable, "-c", SERVICE, *map(str, words)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(f"{words}: {done.stderr}")
    return done.stdout


def make_keys(folder):
    """Make the keys in this process, for a century; return who signs studies."""
    keyring.AUTHORITY_DAYS = keyring.CERTIFICATE_DAYS = CENTURY
    ring = authority(folder / "hub" / "keys")
    for owner in OWNERS:
        enrolled(ring, folder / owner / "keys", owner, days=CENTURY)
    return load_identity(ring.identity).public.fingerprint


def write_rows(file, seed, rows=ROWS):
    rng = np.random.default_rng(seed)
    smokes = rng.random(rows) < 0.3
    ages = np.minimum(rng.integers(0, 65, rows) + 15 * smokes, 79)
    sexes = rng.choice(["Female", "Male"], rows)
    lines = [f"{s},{str(bool(k)).lower()},{a}" for s, k, a in zip(sexes, smokes, ages, strict=True)]
    file.write_text("\n".join(["sex,smoker,age", *lines]) + "\n")


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def start(folder, who):
    words = ["curator", "serve"] if who == "hub" else ["party", "join"]
    config = folder / who / ("curator.toml" if who == "hub" else "party.toml")
    with (folder.parent / f"{folder.name}-{who}.log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-c", SERVICE, *words, "--config", str(config)], stdout=log, stderr=log
        )


def stop(process, number=signal.SIGTERM):
    process.send_signal(number)
    process.wait(timeout=60)


def offer(folder, name, **terms):
    study = folder / f"{name}.toml"
    chosen = {"epsilon": "1", "aggregation": "masked", "method": "dp-subn"} | terms
    parley(
        "curator", "study", "new", "--name", name, "--schema", folder / "schema.toml",
        *(word for key, value in chosen.items() for word in (f"--{key}", value)),
        *(w for o in OWNERS for w in ("--party", f"{o}:{ROWS}:{folder / o}/keys/identity.pub")),
        "--out", study, "--config", folder / "hub" / "curator.toml",
    )  # fmt: skip
    parley("curator", "study", "add", study, "--config", folder / "hub" / "curator.toml")


def of_curator(folder, query):
    with suppress(sqlite3.Error), closing(sqlite3.connect(folder / "hub/state/curator.db")) as file:
        return file.execute(query).fetchone()[0]
    return None


def wait_for(condition, seconds=120):
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            raise SystemExit("it takes too long")
        time.sleep(0.01)


def finish_one(folder):
    """Run a study to its end, countersigned by all."""
    offer(folder, "finished")
    processes = [start(folder, who) for who in ("hub", *OWNERS)]
    signatures = folder / "hub" / "releases"
    wait_for(lambda: len(list(signatures.glob("*/signatures/*"))) == 1 + len(OWNERS))
    time.sleep(2)
    for process in reversed(processes):
        stop(process)


def leave_one_running(folder):
    """Run a study until north has answered the first step; east dies before its answer."""
    offer(folder, "running", epsilon="0.5")
    hub, *nodes = [start(folder, who) for who in ("hub", *OWNERS)]
    running = "SELECT COUNT(*) FROM study WHERE name = 'running' AND state = 'running'"
    answered = (
        "SELECT COUNT(*) FROM awaited NATURAL JOIN study WHERE name = 'running' AND party = 'east'"
        " AND word = 'answer'"
    )
    wait_for(lambda: of_curator(folder, running))
    stop(nodes[1], signal.SIGKILL)
    wait_for(lambda: of_curator(folder, answered))
    time.sleep(2)
    stop(nodes[0])
    stop(hub)


def make(folder):
    port = free_port()
    signer = make_keys(folder)
    (folder / "schema.toml").write_text(SCHEMA)
    (folder / "hub" / "curator.toml").write_text(CURATOR.format(port=port))
    for seed, owner in enumerate(OWNERS):
        (folder / owner / "party.toml").write_text(PARTY.format(port=port))
        (folder / owner / "policy.toml").write_text(POLICY.format(signer=signer))
        write_rows(folder / owner / "rows.csv", seed)
    finish_one(folder)
    leave_one_running(folder)
    offer(folder, "waiting", method="floor", aggregation="paillier")
    write_rows(folder / "rows.csv", 7, rows=200)
    common = [folder / "rows.csv", "--schema", folder / "schema.toml", "--epsilon", "1"]
    signing = ["--sign-with", folder / "north" / "keys" / "identity.key"]
    parley("synthesize", *common, *signing, "--method", "privbayes", "--out", folder / "single")
    simulated = ["--parties", "3", "--aggregation", "masked", "--delta", "1e-6", "--sign-as", "hub"]
    parley("simulate", *common, *signing, *simulated, "--out", folder / "delta")
    for name in ("single", "delta"):
        parley("bundle", folder / name, "--out", folder / f"{name}.zip")
        shutil.rmtree(folder / name)


if __name__ == "__main__":
    make(Path(sys.argv[1]).absolute())
