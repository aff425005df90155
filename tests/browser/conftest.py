"""A browser, and a consortium on files for it to look at."""

import contextlib
import io
import logging
import re
import shutil
import threading
from dataclasses import replace

import pytest

from common.crypto.identities.identity import Identity
from common.crypto.key_files import load_identity
from common.privacy.randomness import OsRandomSource
from common.schema import Schema
from common.service.process import JsonFormatter, system_clock
from common.study.document import Study
from common.study.members import Member
from curator import app as curator_app
from curator.publisher import publish
from curator.settings import CuratorSettings
from parley.simulation.population import demo_schema_toml, make_population
from party import app as party_app
from party.settings import PartySettings
from party.sources.settings import owners_table
from tests.harness.consortium import authority, enrolled

SIGNER = Identity.generate(OsRandomSource())
ROWS = {"north": 1400, "east": 1300, "south": 1500}
POLICY = """
[budget]
epsilon_per_study = "8"
epsilon_in_total = "20"
[study]
min_parties = 2
min_colluders = 0
methods = ["dp-subn", "subn+", "floor"]
signers = ["{signer}"]
[data]
min_rows = 10
[approval]
automatic = {automatic}
"""


@pytest.fixture(scope="session")
def driver(tmp_path_factory):
    selenium = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    chromium, chromedriver = shutil.which("chromium"), shutil.which("chromedriver")
    if not (chromium and chromedriver):
        pytest.skip("chromium and chromium-driver are not on this machine")
    from selenium.webdriver.chrome.service import Service

    options = selenium.ChromeOptions()
    options.binary_location = chromium
    folder = tmp_path_factory.mktemp("browser")
    for flag in (
        "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
        "--disable-background-networking", "--disable-component-update", "--disable-sync",
        "--disable-dev-shm-usage", "--no-proxy-server", f"--user-data-dir={folder / 'profile'}",
        "--window-size=1200,900",
    ):  # fmt: skip
        options.add_argument(flag)
    downloads = folder / "downloads"
    downloads.mkdir()
    options.add_experimental_option("prefs", {"download.default_directory": str(downloads)})
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    found = selenium.Chrome(options=options, service=Service(chromedriver))
    found.downloads = downloads
    found.set_page_load_timeout(60)
    yield found
    found.quit()


@pytest.fixture
def browser(driver):
    """The browser, logged in nowhere, on an empty page."""
    driver.get("about:blank")
    driver.execute_cdp_cmd("Network.clearBrowserCookies", {})
    driver.get_log("browser")
    return driver


class Consortium:
    """A curator and three parties on files, as `parley` would start them."""

    def __init__(self, folder, **settings):
        self.folder = folder
        self.ring = authority(folder / "hub")
        self.stopping = threading.Event()
        self.threads = []
        self.settings = CuratorSettings(
            folder=folder / "state", keys=folder / "hub", releases=folder / "releases",
            listen="127.0.0.1:0", grace_s=1.0, dashboard=True, dashboard_listen="127.0.0.1:0",
            **settings,
        )  # fmt: skip
        self.parties = {name: self._party(name, seed) for seed, name in enumerate(ROWS)}
        self.log = io.StringIO()

    def _party(self, name, seed):
        here = self.folder / name
        enrolled(self.ring, here / "keys", name)
        make_population(ROWS[name], seed=seed).to_csv(here / "rows.csv", index=False)
        automatic = str(name != "north").lower()  # north's owner decides in the browser
        (here / "policy.toml").write_text(
            POLICY.format(automatic=automatic, signer=SIGNER.public.fingerprint)
        )
        return here

    def study(self, name="regional health", **changes):
        terms = {
            "epsilon": "16/5", "name": name, "method": "dp-subn", "aggregation": "masked", **changes
        }  # fmt: skip
        members = [
            Member(name=n, rows=ROWS[n], identity=load_identity(h / "keys" / "identity.key").public)
            for n, h in self.parties.items()
        ]
        schema = Schema.from_toml(demo_schema_toml())
        return Study.of(terms, schema=schema, members=members).signed_by(SIGNER)

    def propose(self, study):
        curator_app.propose(self.settings, study, clock=system_clock)
        return study

    def start_curator(self):
        started, ports = threading.Event(), []

        def run():
            curator_app.serve(
                self.settings,
                publish=lambda outcome: publish(outcome, self.settings.releases),
                stopping=self.stopping,
                clock=system_clock,
                software="parley <test>",
                identity=SIGNER,
                started=lambda port: (ports.append(port), started.set()),
            )

        handler = logging.StreamHandler(self.log)
        handler.setFormatter(JsonFormatter())
        logging.getLogger("curator").addHandler(handler)
        logging.getLogger("curator").setLevel(logging.INFO)
        self._run(run)
        assert started.wait(60)
        self.port = ports[0]
        for _ in range(600):
            if found := re.search(r"dashboard on (\S+) \(token", self.log.getvalue()):
                self.dashboard = found[1]
                break
            threading.Event().wait(0.05)
        self.token = (self.settings.folder / "dashboard.token").read_text().strip()

    def again(self, **settings):
        """A new process on the same files."""
        self.settings = replace(self.settings, **settings)
        self.stopping, self.threads, self.log = threading.Event(), [], io.StringIO()
        self.start_curator()

    def party_settings(self, name):
        here = self.parties[name]
        return PartySettings(
            folder=here / "state", keys=here / "keys", policy=here / "policy.toml",
            curator=f"127.0.0.1:{self.port}", first_wait_s=0.05, longest_wait_s=0.2,
            look_again_s=0.2,
        )  # fmt: skip

    @contextlib.contextmanager
    def context(self, name):
        rows = {"kind": "csv", "path": "rows.csv"}
        source = owners_table(rows, folder=self.parties[name], environment={})
        with party_app.party_context(
            self.party_settings(name), source, clock=system_clock
        ) as context:
            yield context

    def decide_by_policy(self, name):
        text = POLICY.format(automatic="true", signer=SIGNER.public.fingerprint)
        (self.parties[name] / "policy.toml").write_text(text)

    def join(self, name, stopping=None):
        """Run a node, until the consortium stops or this one is to."""

        def run():
            with self.context(name) as context:
                party_app.session_manager(
                    self.party_settings(name), context, environment={},
                    stopping=stopping or self.stopping,
                    software="parley <test>",
                ).run(once=False)  # fmt: skip

        return self._run(run)

    def _run(self, target):
        thread = threading.Thread(target=target, daemon=True)
        thread.start()
        self.threads.append(thread)
        return thread

    def stop(self):
        self.stopping.set()
        for thread in self.threads:
            thread.join(60)
        logging.getLogger("curator").handlers.clear()
        logging.getLogger("curator").setLevel(logging.NOTSET)


@pytest.fixture
def make_consortium(tmp_path):
    made = []

    def make(**settings):
        made.append(Consortium(tmp_path, **settings))
        return made[-1]

    yield make
    for consortium in made:
        consortium.stop()
