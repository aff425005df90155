"""The generated code is the contract's, and the contract explains itself."""

import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet

from common.wire.catalogue import PROTOCOL
from common.wire.strict import LATER
from common.wire.v1 import curator_pb2, errors_pb2, messages_pb2

ROOT = Path(__file__).resolve().parents[3]
STORED = ROOT / "tests" / "stored"
CONTRACTS = sorted((ROOT / "protos").rglob("*.proto"))


def generator(*arguments, root=ROOT):
    return subprocess.run(
        [sys.executable, root / "protos/generate.py", *arguments], capture_output=True, text=True
    )


def copy_of_the_project(folder):
    for path in [*CONTRACTS, *(ROOT / "common/wire/v1").glob("*.py*"), ROOT / "protos/generate.py"]:
        target = folder / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_bytes())


def test_the_committed_code_is_what_the_contract_generates():
    pytest.importorskip("grpc_tools")
    done = generator("--check")
    assert (done.returncode, done.stderr) == (0, "")


def test_drift_is_noticed_and_repaired(tmp_path):
    pytest.importorskip("grpc_tools")
    copy_of_the_project(tmp_path)
    stub = tmp_path / "common/wire/v1/curator_pb2.pyi"
    stub.write_text(stub.read_text() + "\n")
    (tmp_path / "common/wire/v1/old_pb2.py").touch()
    check = generator("--check", root=tmp_path)
    assert check.returncode == 1
    assert "curator_pb2.pyi, old_pb2.py" in check.stderr
    assert "make protos" in check.stderr
    assert generator(root=tmp_path).returncode == 0
    assert generator("--check", root=tmp_path).returncode == 0


@pytest.mark.parametrize("path", CONTRACTS, ids=lambda path: path.name)
def test_every_declaration_of_the_contract_has_a_comment(path):
    lines = path.read_text().splitlines()
    assert "package parley.v1;" in lines
    declaration = re.compile(
        r"\s*((message|enum|service|rpc|oneof|optional|repeated)\b|(\w+ )?\w+ = \d+;)"
    )
    for before, line in pairwise(lines):
        if declaration.match(line):
            assert before.strip().startswith("//"), f"{path.name}: no comment above {line.strip()}"


def fields_of(files):
    """Return the number and the type of every field, of every value and of every call."""
    declared = {}
    for file in files:
        for message in file.message_type:
            for field in message.field:
                kind = (field.number, field.type, field.label, field.type_name)
                declared[f"{message.name}.{field.name}"] = kind
        for enum in file.enum_type:
            declared |= {f"{enum.name}.{value.name}": value.number for value in enum.value}
        for service in file.service:
            for call in service.method:
                shape = (call.input_type, call.output_type)
                streams = (call.client_streaming, call.server_streaming)
                declared[f"{service.name}.{call.name}"] = (shape, streams)
    return declared


def contract_now():
    files = []
    for module in (errors_pb2, curator_pb2, messages_pb2):
        file = FileDescriptorProto()
        module.DESCRIPTOR.CopyToProto(file)
        files.append(file)
    return fields_of(files)


def stored_contract():
    stored = FileDescriptorSet.FromString((STORED / f"protocol-{PROTOCOL}.binpb").read_bytes())
    return fields_of(stored.file)


def test_the_protocol_of_earlier_versions_is_still_spoken():
    """Compare with the contract as the first version with this protocol had it."""
    now = contract_now()
    changed = {name for name, kind in stored_contract().items() if now.get(name) != kind}
    assert changed == set(), "other numbers or types: raise PROTOCOL, and store its contract"


def test_messages_gain_only_fields_that_may_be_missing():
    stored = stored_contract()
    messages = {name.partition(".")[0] for name in stored} - {"ErrorDetail", "ErrorCode"}
    calls = {"CuratorService"}  # a call that an earlier curator does not have is VERSION_MISMATCH
    gained = {
        name
        for name in contract_now().keys() - stored.keys()
        if name.partition(".")[0] in messages - calls
    }
    assert gained == LATER, (
        "an earlier version refuses a message with a field that it does not know. Send the field "
        "only to a side that knows it and list it in strict.LATER, or raise PROTOCOL"
    )
