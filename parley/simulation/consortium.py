"""A whole consortium on one machine: a curator and its parties as processes of their own.

Keys, certificates, settings files and rows are written below one folder, every process is started
with the command a deployment uses, and they meet on loopback over mTLS:

    with Consortium(folder, tables, schema, terms) as consortium:
        release = consortium.run(timeout_s=600, tell=tell)

Processes are ended by their own process ids when the block ends, however it ends. Each also has the
reading end of a pipe from this one as its standard input, and stops when that ends. So none is
left behind even where this process is killed and no block ends.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import pyarrow.parquet

from common.crypto.key_files import load_identity, no_passphrase
from common.errors import LocalError, ParleyError
from common.exchanges.setup import with_commitments
from common.files import read
from common.fitted.single_owner import as_arrow
from common.methods.registry import new_study
from common.release.verify import Verified, verify
from common.schema import Schema
from common.service.process import system_clock
from common.study.document import Study
from common.study.members import Member
from common.study.transcript import transcript_of
from common.wire.pki.keyring import CERTIFICATE_DAYS, Keyring, init_curator, init_party
from common.wording import Reporter, silent
from curator.app import propose
from curator.settings import CuratorSettings, curator_settings, open_store, priors
from curator.store.records import Record, StudyState
from parley.simulation.linked_files import OwnersTables
from party.countersigning import countersign
from party.settings import party_settings

HOST = "127.0.0.1"
_CURATOR = "curator"
_LOOK_EVERY_S = 0.1
_ENDS_S = 60.0
_TAIL_LINES = 12
_OURS = ("PARLEY_", "HTTPS_PROXY", "https_proxy")  # of the user's own services, not of these


@dataclass(frozen=True, slots=True)
class _Child:
    """A process and where it logs."""

    process: subprocess.Popen[bytes]
    log: Path


class Consortium:
    """The files of curator and owners, and the processes that run on them.

    Everything is written into `folder`, which exists and is empty. `terms` are those of `Study.of`.
    With a linked schema an owner has two tables, which the column `person` joins.

    Raises:
        InputError: the study contradicts itself, or a table is not of the schema.
    """

    def __init__(
        self,
        folder: Path,
        tables: Mapping[str, OwnersTables],
        schema: Schema,
        terms: Mapping[str, object],
        *,
        file_format: str = "csv",
        prior: Path | None = None,
        person: str = "",
    ) -> None:
        self._folder = folder.absolute()
        self._file_format = file_format
        self._children: dict[str, _Child] = {}
        self.address = ""  # the curator's, while it runs
        self.refusals: dict[str, str] = {}  # who did not countersign the release, and why
        ring = init_curator(
            self._folder / _CURATOR / "keys", _CURATOR, (HOST,), now=system_clock(), external=False
        )
        self._curator = self._add_curator()
        self._parties: dict[str, Path] = {}
        members = [self._add_party(name, table, ring, person) for name, table in tables.items()]
        signer = load_identity(ring.identity)
        known = priors(self._curator)
        digest = None if prior is None else known.add(prior).digest
        pinned = signer.public.fingerprint
        named = {"name": "simulation", "prior": digest, "curator": pinned, **terms}
        study = with_commitments(new_study(named, schema=schema, members=members))
        self.study = study.signed_by(signer)
        known.begin(self.study)  # refuses a study that could never be run
        for home in self._parties.values():
            (home / "policy.toml").write_text(_policy(self.study), encoding="utf-8")
        propose(self._curator, self.study, clock=system_clock)

    def _add_curator(self) -> CuratorSettings:
        file = self._folder / _CURATOR / "curator.toml"
        file.write_text(
            f'folder = "state"\nkeys = "keys"\nreleases = "releases"\nlisten = "{HOST}:0"\n',
            encoding="utf-8",
        )
        return curator_settings(file, {}).values

    def _add_party(self, name: str, table: OwnersTables, ring: Keyring, person: str) -> Member:
        home = self._parties[name] = self._folder / f"party-{len(self._parties) + 1}"
        party_ring = init_party(home / "keys", name)
        _, path = ring.approve(party_ring.read_request(), days=CERTIFICATE_DAYS, now=system_clock())
        party_ring.trust(read(ring.files.authority), where=ring.files.authority)
        party_ring.accept(read(path), where=path, now=system_clock())
        parts = table if isinstance(table, tuple) else (table,)
        source, rows = "", [as_arrow(part) for part in parts]
        for header, content in zip(("source", "source.events"), rows, strict=False):
            pyarrow.parquet.write_table(content, home / f"{header}.parquet")
            source += f'[{header}]\nkind = "parquet"\npath = "{header}.parquet"\n'
            source += f"person = {json.dumps(person, ensure_ascii=False)}\n" if person else ""
        (home / "party.toml").write_text(
            'folder = "state"\nkeys = "keys"\npolicy = "policy.toml"\n'
            "first_wait_s = 0.1\nlongest_wait_s = 1.0\nlook_again_s = 0.2\nattempts = 100\n"
            f"fetch_releases = false\n{source}",
            encoding="utf-8",
        )
        return Member(
            name=name, rows=rows[0].num_rows, identity=load_identity(party_ring.identity).public
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for child in self._children.values():
            with suppress(ProcessLookupError):
                child.process.terminate()
        for child in self._children.values():
            try:
                child.process.wait(_ENDS_S)
            except subprocess.TimeoutExpired:
                child.process.kill()
                child.process.wait()
            if child.process.stdin is not None:
                child.process.stdin.close()

    def run(self, *, timeout_s: float, tell: Reporter = silent) -> Path:
        """Run the study to its end; where its release is, signed by all but `refusals`.

        Raises:
            LocalError: a process ended, the study was refused or failed, or it takes too long; with
                the last lines of that process's log.
        """
        deadline = time.monotonic() + timeout_s
        tell(0.0, "starting the curator and the parties")
        with _reserved_port() as port:
            self.address = f"{HOST}:{port}"
            self._start_all()
            place = self._watch(deadline, tell)
        tell(0.99, "verifying the release")
        # Once: the owners of a simulation are one user.
        verified = replace(verify(place, unsigned=True), where="the release")
        for name in self._parties:
            try:
                self._countersign(name, place, verified, tell)
            except ParleyError as error:  # the study is done and paid: its release is kept
                self.refusals[name] = str(error)
        return place

    def _countersign(self, name: str, place: Path, verified: Verified, tell: Reporter) -> None:
        self._wait_for_end(name)
        tell(0.99, f"{name} countersigns the release")
        file = self._parties[name] / "party.toml"
        settings = party_settings(file, {}, {"curator": self.address}).values
        countersign(place, settings, passphrase=no_passphrase, verified=verified)

    def transcript(self) -> dict[str, object]:
        """Return bytes, rounds and seconds by phase and party, as the curator counted them."""
        with open_store(self._curator) as store:
            return transcript_of(self.study, store.traffic.phases(self.study.digest))

    def _start_all(self) -> None:
        """Start all processes at once; the parties dial until the curator answers."""
        home = self._folder / _CURATOR
        words = ["curator", "serve", "--listen", self.address, "--format", self._file_format]
        self._start(_CURATOR, home, [*words, "--config", str(home / "curator.toml")])
        for name, home in self._parties.items():
            words = ["party", "join", "--once", "--curator", self.address]
            self._start(name, home, [*words, "--config", str(home / "party.toml")])

    def _start(self, name: str, home: Path, words: list[str]) -> None:
        environment = {k: v for k, v in os.environ.items() if not k.startswith(_OURS)}
        # The same code as ours, wherever that was imported from, and nothing of the user's folder.
        root = str(Path(__file__).resolve().parents[2])
        earlier = environment.get("PYTHONPATH")
        environment["PYTHONPATH"] = os.pathsep.join([root, *([earlier] if earlier else [])])
        log = home / "log.jsonl"
        with log.open("ab") as stream:
            process = subprocess.Popen(  # noqa: S603  (our own command, no shell)
                [sys.executable, "-P", "-m", "parley", *words, "--stop-with-stdin"],
                env=environment,
                stdin=subprocess.PIPE,
                stdout=stream,
                stderr=stream,
            )
        self._children[name] = _Child(process, log)

    def _watch(self, deadline: float, tell: Reporter) -> Path:
        """Until the study is over; where its release is."""
        with open_store(self._curator) as store:
            while True:
                ended = {
                    n for n, child in self._children.items() if child.process.poll() is not None
                }
                record = store.record(self.study.digest)
                if record.state is StudyState.DONE:
                    return Path(record.place)
                if record.state.over or record.cause:
                    raise self._failure(self._culprit(), f"{record.state.value}: {record.cause}")
                if ended:
                    name = sorted(ended)[0]
                    raise self._failure(name, f"{name!r} stopped before the study was over")
                if time.monotonic() > deadline:
                    raise self._failure(_CURATOR, f"the study takes too long: {_doing(record)}")
                tell(record.step / (record.step + 3), _doing(record))
                time.sleep(_LOOK_EVERY_S)

    def _culprit(self) -> str:
        """Return who can say why: a party that gave up, or else the curator."""
        for name in self._parties:
            with suppress(subprocess.TimeoutExpired):
                if self._children[name].process.wait(1.0) != 0:
                    return name
        return _CURATOR

    def _wait_for_end(self, name: str) -> None:
        try:
            code = self._children[name].process.wait(_ENDS_S)
        except subprocess.TimeoutExpired:
            raise self._failure(name, f"{name!r} does not stop after the study") from None
        if code != 0:
            raise self._failure(name, f"{name!r} ended with exit code {code}")

    def _failure(self, name: str, what: str) -> LocalError:
        lines = self._children[name].log.read_text(encoding="utf-8", errors="replace").splitlines()
        tail = "\n".join(f"  {line}" for line in lines[-_TAIL_LINES:])
        return LocalError(f"{what}\nthe end of the log of {name!r}:\n{tail}")


@contextmanager
def _reserved_port() -> Iterator[int]:
    """Reserve a port on loopback that no other process is given, for the curator to listen on.

    Linux lets a second socket bind to it because both allow reuse and this one does not listen.
    """
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind((HOST, 0))
        yield holder.getsockname()[1]


def _doing(record: Record) -> str:
    return f"{record.phase or record.state.value}: step {record.step}"


def _policy(study: Study) -> str:
    """Approve the study for every owner: the user who starts a simulation is all of them."""
    # The paper's profile costs a party its epsilon again in every later party's release.
    most = study.epsilon * (1 + len(study.members) if study.profile == "paper" else 1)
    return (
        f'[budget]\nepsilon_per_study = "{most}"\nepsilon_in_total = "{most}"\n'
        f'max_delta = "{study.delta}"\n'
        f"[study]\nmin_parties = 1\nmin_colluders = 0\nmin_key_bits = {study.key_bits}\n"
        f"methods = {json.dumps([study.method])}\nprofiles = {json.dumps([study.profile])}\n"
        f"aggregations = {json.dumps([study.aggregation.value])}\n"
        f"signers = {json.dumps([study.signer])}\n"
        f'protects = "{"people" if study.person_rows else "rows"}"\n'
        "[approval]\nautomatic = true\n"
    )
