"""An owner's node fetches the release of a study that is done, over the same connection as all."""

import contextlib
import time
from dataclasses import replace

import pytest

from common.crypto.key_files import load_identity
from common.methods.registry import methods
from common.service.process import system_clock
from common.study.document import Study
from common.wire.catalogue import ErrorCode, WireError
from common.wire.pki.certificates import Role
from common.wire.pki.credentials import CredentialFiles
from common.wire.strict import MOST_FRAME_BYTES
from curator.publisher import curator_signer, publish
from curator.server.admission import CallKind, limits
from curator.settings import curator_settings, open_store
from curator.store.records import StudyState
from party.client.dialer import Address, Dialer
from tests.harness.deployed_folder import NORTH, DeployedFolder, outcome_of, serving


class Hub:
    """A curator whose study is what the test says it is."""

    def __init__(self, place, study, environment):
        self.place, self.study = place, study
        self.settings = curator_settings(place.folder / "hub" / "curator.toml", environment).values
        self.port = 0

    def store(self):
        return open_store(self.settings, begin=True)

    def finish(self):
        """Finish a study as after its last result; return the folder of the release."""
        made = publish(
            self.outcome_of(self.study), self.settings.releases.absolute(),
            signer=curator_signer(self.settings.keys, lambda path: ""),
        )  # fmt: skip
        with self.store() as store, store.transaction():
            store.end(self.study.digest, StudyState.DONE, cause="", place=str(made), at="now")
        return made

    def outcome_of(self, study):
        keys = {name: self.place.folder / name / "keys" for name in study.parties}
        return outcome_of(study, {n: load_identity(k / "identity.key") for n, k in keys.items()})

    def dialer(self, name):
        files = CredentialFiles.in_folder(self.place.folder / name / "keys", Role.PARTY)
        address = Address(target=f"127.0.0.1:{self.port}", proxy=None, files=files, software="test")
        return Dialer(address, system_clock)


@pytest.fixture
def hub(parley, small, monkeypatch, request):
    place = DeployedFolder(small())
    assert parley(*place.words()).code == 0
    study = Study.load(place.folder / "study.toml")
    made = Hub(place, study, getattr(request, "param", {}))
    with made.store() as store:
        store.propose(study, at="now")
    with serving(made.settings) as made.port:
        monkeypatch.setenv("PARLEY_PARTY_CURATOR", f"127.0.0.1:{made.port}")
        yield made


def fetch(parley, hub, *words):
    return parley(
        "party", "fetch", hub.study.digest.hex()[:8], "--release", "--out", "release.zip",
        *words, *NORTH,
    )  # fmt: skip


def test_a_release_is_fetched_verified_and_the_same_as_the_curators(hub, parley):
    made = hub.finish()
    done = fetch(parley, hub)
    assert done.code == 0, done.err
    assert "verified release.zip: " in done.out
    signer = load_identity(hub.place.ring.identity).public.fingerprint
    assert f"signed by curator 'hub' {signer}" in done.out
    assert parley("bundle", made, "--out", "by-hand.zip").code == 0
    folder = hub.place.folder
    assert (folder / "release.zip").read_bytes() == (folder / "by-hand.zip").read_bytes()
    assert parley("verify", "release.zip").code == 0
    again = fetch(parley, hub)
    assert (again.code, "nothing is overwritten" in again.err) == (3, True)


def test_a_release_of_another_version_of_its_method_is_kept_and_not_derived(
    hub, parley, monkeypatch
):
    hub.finish()
    newer = {name: replace(each, version=99) for name, each in methods().items()}
    monkeypatch.setattr("common.release.derive.methods", lambda: newer)
    kept = fetch(parley, hub)
    assert kept.code == 0
    assert kept.out.startswith("checked ")
    made_with = f"version {methods()[hub.study.method].version} of {hub.study.method}"
    assert f"whether the model follows from the sums: {made_with} made it" in kept.err


def test_a_study_that_is_not_done_has_no_release(hub, parley):
    done = fetch(parley, hub)
    assert done.code == 3
    assert "has no release: at the curator it is waiting for parties" in done.err
    with hub.dialer("north").dial() as connection, pytest.raises(WireError) as refusal:
        list(connection.fetch_release(hub.study.digest))
    assert refusal.value.code is ErrorCode.OUT_OF_TURN


def left_nothing(hub):
    return not [path for path in hub.place.folder.iterdir() if "release.zip" in path.name]


def test_a_release_that_was_changed_or_is_too_large_is_not_kept(hub, parley):
    made = hub.finish()
    large = fetch(parley, hub, "--most-gb", "0.000001")
    assert large.code == 3
    assert "more than 1,000 bytes" in large.err
    (made / "synthetic.csv").write_text("age,sex\n20,Male\n")
    changed = fetch(parley, hub)
    assert changed.code == 3
    assert "synthetic.csv" in changed.err
    assert left_nothing(hub)


def test_the_release_of_another_study_is_not_kept(hub, parley):
    assert parley(*hub.place.words(out="other.toml", name="another")).code == 0
    other = Study.load(hub.place.folder / "other.toml")
    made = publish(hub.outcome_of(other), hub.settings.releases.absolute())
    with hub.store() as store, store.transaction():
        store.end(hub.study.digest, StudyState.DONE, cause="", place=str(made), at="now")
    done = fetch(parley, hub)
    assert done.code == 3
    assert "the release of another study" in done.err
    assert left_nothing(hub)


def test_a_stranger_gets_no_release_and_one_that_is_gone_is_said_to_be(hub):
    made = hub.finish()
    hub.place.add("west")
    with hub.dialer("west").dial() as connection, pytest.raises(WireError) as refusal:
        list(connection.fetch_release(hub.study.digest))
    assert refusal.value.code is ErrorCode.STUDY_UNKNOWN
    made.rename(made.with_name("elsewhere"))
    with hub.dialer("north").dial() as connection, pytest.raises(WireError) as refusal:
        list(connection.fetch_release(hub.study.digest))
    assert refusal.value.code is ErrorCode.INTERNAL


def test_a_large_release_comes_in_pieces_and_only_a_few_at_a_time(hub):
    made = hub.finish()
    (made / "large.gz").write_bytes(bytes(range(256)) * (MOST_FRAME_BYTES // 8))
    sent, most = [], limits(1)[CallKind.RELEASE].of_a_party
    with contextlib.ExitStack() as stack:
        connection = stack.enter_context(hub.dialer("north").dial())
        for _ in range(most):  # begun, and not read on: gRPC holds the rest back
            sent.append(connection.fetch_release(hub.study.digest))
            assert 0 < len(next(sent[-1])) <= MOST_FRAME_BYTES
        with pytest.raises(WireError) as refusal:
            list(connection.fetch_release(hub.study.digest))
        assert refusal.value.code is ErrorCode.TOO_MANY_CALLS
        sizes = [len(piece) for piece in sent[0]]
        assert max(sizes) <= MOST_FRAME_BYTES
        assert sum(sizes) > 30 * MOST_FRAME_BYTES
        for each in sent[1:]:
            each.close()


@pytest.mark.parametrize("hub", [{"PARLEY_CURATOR_FRAME_TIMEOUT_S": "0.2"}], indirect=True)
def test_a_party_that_does_not_read_on_gives_its_place_up(hub):
    made = hub.finish()
    (made / "large.gz").write_bytes(bytes(range(256)) * (MOST_FRAME_BYTES // 8))
    with hub.dialer("north").dial() as connection:
        begun = [connection.fetch_release(hub.study.digest) for _ in range(2)]
        assert all(next(each) for each in begun)
        assert limits(1)[CallKind.RELEASE].of_a_party == len(begun)
        deadline = time.monotonic() + 20
        while not _first_pieces(connection, hub.study, len(begun)):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        for each in begun:
            with pytest.raises(WireError) as ended:
                list(each)
            assert ended.value.code is ErrorCode.UNAVAILABLE


def _first_pieces(connection, study, count):
    """Begin to fetch so often and leave: whether the curator had room for all of them."""
    releases = [connection.fetch_release(study.digest) for _ in range(count)]
    try:
        return all(next(each) for each in releases)
    except WireError as refusal:
        if refusal.code is not ErrorCode.TOO_MANY_CALLS:
            raise
        return False
    finally:
        for each in releases:
            each.close()
