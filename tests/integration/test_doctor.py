"""What the doctor asks of a running curator: its clock, its version, and whether our rows fit."""

import contextlib
import datetime as dt
import json
import socket
import threading

import grpc
import pytest
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import (
    ProtoReflectionDescriptorDatabase,
)

from common.privacy.randomness import OsRandomSource, SeededRandomSource
from common.service import checks
from common.service.database import Database
from common.service.process import system_clock
from common.wire import tls
from curator.server.service import CuratorServer
from parley.cli.main import main
from party.journal import Journal
from tests.harness.small_study import SCHEMA

POLICY = '[budget]\nepsilon_per_study = "9"\nepsilon_in_total = "9"\n'


@pytest.fixture
def server(consortium, request):
    """Start another server on the same studies, with settings of its own."""
    curator = consortium.curator
    changes = {"clock": system_clock, "software": "parley"} | request.param
    made = CuratorServer(
        curator.studies, files=curator.ring.files, revoked=curator.ring.revoked,
        listen="127.0.0.1:0", **changes,
    )  # fmt: skip
    yield made.start()
    made.stop(grace_s=0)


def examined(consortium, port, capsys):
    folder = consortium.curator.folder
    rows = SCHEMA.decode(consortium.parties["north"].table, SeededRandomSource(0))
    rows.to_csv(folder / "rows.csv", index=False)
    (folder / "policy.toml").write_text(POLICY)
    (folder / "party.toml").write_text(
        f'folder = "state"\nkeys = "north"\npolicy = "policy.toml"\n'
        f'curator = "127.0.0.1:{port}"\n[source]\nkind = "csv"\npath = "rows.csv"\n'
    )
    code = main(["doctor", "party", "--json", "--config", str(folder / "party.toml")])
    told = json.loads(capsys.readouterr().out)
    return code, {check["check"]: check for check in told["checks"]}


@pytest.mark.parametrize(
    "server",
    [{"clock": lambda: system_clock() + dt.timedelta(minutes=10), "software": "parley 99"}],
    indirect=True,
)
def test_another_clock_and_another_version_are_warned_about(consortium, server, capsys):
    code, found = examined(consortium, server, capsys)
    assert found["clocks"]["warning"]
    assert "s ahead" in found["clocks"]["words"]
    assert found["versions"]["warning"]
    assert "parley 99 at the curator" in found["versions"]["words"]
    assert found["invitation"]["words"].startswith("'test': csv, 40 rows"), found
    assert code == 0


@pytest.mark.parametrize("server", [{}], indirect=True)
def test_clocks_that_agree_are_told_with_their_offset(consortium, server, capsys):
    consortium.parties["north"].table = consortium.parties["east"].table
    code, found = examined(consortium, server, capsys)
    assert not found["clocks"]["warning"]
    assert found["clocks"]["words"].startswith("the curator's is 0.")
    assert "50 rows, and the study says 40" in found["invitation"]["words"]
    assert code == 3


@pytest.mark.parametrize("server", [{}], indirect=True)
def test_a_rollback_of_the_ledger_is_found(consortium, server, capsys):
    consortium.attend_all()  # with another folder than the one that is examined
    code, found = examined(consortium, server, capsys)
    assert not found["rollback"]["ok"]
    assert "lacks what those messages cost" in found["rollback"]["words"]
    assert code == 3


@pytest.mark.parametrize("server", [{}], indirect=True)
def test_data_that_changed_during_a_study_is_found(consortium, server, capsys):
    folder = consortium.curator.folder
    (folder / "state").mkdir()
    database = Database(folder / "state" / "party.db")
    Journal(database, OsRandomSource()).begin(
        consortium.study.digest, name="test", data_digest="another table's", at="now"
    )
    database.close()
    _, found = examined(consortium, server, capsys)
    assert not found["invitation"]["ok"]
    assert "study 'test': the data changed since the study began" in found["invitation"]["words"]


@pytest.fixture
def closed_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture
def talkative_port():
    """Somebody else's service, which answers in plain text."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve():
            with contextlib.suppress(OSError):  # the test is over
                while True:
                    caller, _ = listener.accept()
                    with caller:
                        caller.recv(1 << 10)
                        caller.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


@pytest.mark.parametrize(
    ("port", "reason"),
    [("closed_port", "connection refused"), ("talkative_port", "does not speak TLS")],
)
def test_a_curator_out_of_reach_is_named_with_what_is_in_the_way(
    consortium, capsys, request, port, reason
):
    number = request.getfixturevalue(port)
    code, found = examined(consortium, number, capsys)
    assert f"127.0.0.1:{number}: " in found["curator"]["words"]
    assert reason in found["curator"]["words"]
    assert code == 3


def services(consortium, port):
    credentials = tls.channel_credentials(consortium.parties["north"].ring.files.load())
    with grpc.secure_channel(f"127.0.0.1:{port}", credentials) as channel:
        return list(ProtoReflectionDescriptorDatabase(channel).get_services())


@pytest.mark.parametrize("server", [{"reflection": True}], indirect=True)
def test_calls_are_listed_where_the_settings_say_so_and_nowhere_else(consortium, server):
    assert "parley.v1.CuratorService" in services(consortium, server)
    with pytest.raises(grpc.RpcError) as refused:
        services(consortium, consortium.curator.port)
    assert refused.value.code() is grpc.StatusCode.UNIMPLEMENTED


def test_a_copy_from_before_an_upgrade_is_to_be_deleted(tmp_path):
    folder = tmp_path / "state"
    assert "free" in checks.state_folder(folder)
    assert not folder.exists(), "a check makes nothing"
    folder.mkdir(mode=0o700)
    assert "free" in checks.state_folder(folder)
    (folder / "party.db.version-3").touch()
    with pytest.raises(checks.Concern, match=r"party\.db\.version-3 is from before an upgrade"):
        checks.state_folder(folder)
