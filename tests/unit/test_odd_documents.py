"""Every key of every document with every type of value: read, or refused in words.

A document is a complete one, in which one value at a time is replaced. What comes of it is a value
that the reader accepts or an InputError, never another exception. The default run takes a sample of
the replacements; the slow tests take all of them.
"""

import contextlib
import copy
import datetime as dt
import json
import math
import shutil
import tomllib

import pytest

from common.crypto.identities.identity import Identity
from common.errors import InputError, OtherVersionError
from common.methods.registry import methods, run_of
from common.privacy.randomness import SeededRandomSource
from common.release.archive import finish
from common.release.manifest import Manifest, Signature, Signer, SignerRole
from common.release.verify import verify
from common.schema.schema import Schema
from common.schema.toml import toml
from common.study.document import Study
from curator.settings import curator_settings
from parley.cli.main import main
from parley.reader.fitted import load
from party.owner.policy import SAMPLE, Policy
from party.settings import party_settings, source_settings

PLAIN = [
    [], {}, [[]], [{}], {"a": {"b": []}}, ["", 1, True], [1.5], 0, -1, 7, 10**30, 1.5, -0.0, True,
    False, "", "x", " ", "\u202e", "0", "-1", "1/0", "1e400", "nan", "x" * 5000, math.nan, math.inf,
]  # fmt: skip
ODD = [
    *PLAIN, dt.date(2026, 1, 1), dt.datetime(2026, 1, 1, 1), dt.time(1),
    dt.datetime(2026, 1, 1, tzinfo=dt.UTC),
]  # fmt: skip
OF_JSON = [*PLAIN, None]
SAMPLED = 200  # replacements in a document
SAMPLED_RELEASES = 8

SCHEMA = """
[[attribute]]
name = "sex"
kind = "categorical"
values = ["Female", "Male", "Other"]
missing = ["N", -9]
[[attribute]]
name = "smoker"
kind = "boolean"
[[attribute]]
name = "age"
kind = "integer"
min = 0
max = 79
bins = 4
[[attribute]]
name = "income"
kind = "real"
edges = [0.0, 1.5, 10.0]
[[attribute]]
name = "born"
kind = "date"
min = 1950-01-01
max = 2000-12-31
bins = 5
[[attribute]]
name = "region"
kind = "categorical"
values = ["a", "b", "c", "d"]
hierarchy = { north = ["a", "b"], south = ["c", "d"] }
[[rule]]
when = "sex = Male"
then = "smoker = true"
"""
STUDY = """
name = "odd"
method = "{method}"
epsilon = "1"
delta = "0"
profile = "sound"
noise = "distributed"
aggregation = "masked"
colluders = 1
may_miss = 0
cohorts = 1
key_bits = 2048
encoding = "own"
output_rows = 50
criteria_epsilon = "0.1"
purpose = "a test"
recipient = "readers"
contact = "x@example.org"
ethics = "1/2026"
expires = 2099-12-31
"""
CRITERIA = """
[[criterion]]
mean = "age"
within = "3 %"
[[criterion]]
share = "age >= 60 and smoker = true"
within = "0.01"
"""
SETTINGS = {
    "dp-subn": "[dp-subn]\ntheta_tables = 6\nmost_cells = 1000\n",
    "distdiffgen": '[distdiffgen]\ntarget = "smoker"\n',
}
CURATOR = """
folder = "state"
keys = "keys"
releases = "releases"
listen = "127.0.0.1:0"
passphrase_file = "passphrase"
most_streams = 200
frame_timeout_s = 60.0
grace_s = 20.0
step_deadline_s = 3600.0
step_warning_s = 600.0
end_overdue = false
webhook = "https://example.org/"
on_event = "program"
log_level = "info"
metrics = "127.0.0.1:0"
reflection = false
dashboard = false
dashboard_listen = "127.0.0.1:7444"
dashboard_actions = false
dashboard_operators = "operators.txt"
"""
PARTY = """
folder = "state"
keys = "keys"
policy = "policy.toml"
curator = "127.0.0.1:7443"
passphrase_file = "passphrase"
attempts = 1000
first_wait_s = 0.5
longest_wait_s = 30.0
look_again_s = 5.0
seats = 4
releases = "releases"
fetch_releases = true
countersign = true
webhook = ""
on_event = "program"
log_level = "info"
metrics = ""
"""
SOURCES = {
    "csv": 'path = "rows.csv"\ndelimiter = ";"\nwhere = "a = 1"\nas_of = 2026-06-30\n'
    'person = "id"\n[source.columns]\nsex = "GESCHL"\n[source.recode.sex]\n1 = "Male"\n',
    "excel": 'path = "rows.xlsx"\nsheet = "2026"\n',
    "sqlite": 'path = "rows.db"\nquery = "SELECT 1"\n',
    "postgresql": 'uri = "postgresql://reader@db.example/health"\ntable = "people"\n',
    "spark": 'path = "rows"\nmaster = "local"\n',
}


def replaced(document, odd):
    """Yield the document with one value replaced, for every place in it and every odd value."""
    for path in places(document):
        for value in odd:
            changed = copy.deepcopy(document)
            inside = changed
            for key in path[:-1]:
                inside = inside[key]
            inside[path[-1]] = value
            yield path, value, changed


def places(document, path=()):
    entries = document.items() if isinstance(document, dict) else enumerate(document)
    for key, value in entries:
        yield (*path, key)
        if isinstance(value, dict | list):
            yield from places(value, (*path, key))


def toml_text(document):
    """Write a document; numbers that a text cannot have otherwise are written as TOML has them."""
    return "\n".join(f"{toml(key)} = {_value(value)}" for key, value in document.items())


def _value(value):
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{toml(key)} = {_value(it)}' for key, it in value.items())} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    return value.isoformat() if isinstance(value, dt.time) else toml(value)


def check(read, document, odd, *, write=toml_text, sampled=None):
    """Read every replacement, or some; refuse exceptions that are not ours."""
    read(write(document))
    changes = list(replaced(document, odd))
    stride = 1 if sampled is None else max(1, len(changes) // sampled)
    while math.gcd(stride, len(odd)) > 1:  # or some values would never be tried
        stride += 1
    for path, value, changed in changes[::stride]:
        try:
            with contextlib.suppress(InputError, OtherVersionError):
                read(write(changed))
        except Exception as error:
            raise AssertionError(f"{path} = {value!r:.100}: {error!r}") from error


def study_text(method):
    parties = "".join(
        f'[[party]]\nname = "{name}"\nrows = 40\nidentity = "{identity_of(name)}"\n'
        for name in ("north", "east")
    )
    text, criteria = STUDY.format(method=method), CRITERIA
    if method == "distdiffgen":  # which has none
        text, criteria = text.replace('criteria_epsilon = "0.1"\n', ""), ""
    return text + SETTINGS.get(method, "") + parties + criteria + SCHEMA


def identity_of(name):
    return Identity.generate(SeededRandomSource(name)).public.text


def read_study(text):
    study = Study.from_toml(text)
    Study.from_toml(study.to_toml())
    run_of(study)


def read_schema(text):
    Schema.from_toml(Schema.from_toml(text).to_toml())


def settings_reader(tmp_path, kind):
    file = tmp_path / "settings.toml"

    def read(text):
        file.write_text(text)
        if kind == "curator":
            curator_settings(file, {}).lines()
            return
        settings = party_settings(file, {})
        settings.lines()
        source_settings(settings, file, {})

    return read


ALL = pytest.param(None, marks=pytest.mark.slow, id="all")
SOME = pytest.param(SAMPLED, id="some")


@pytest.mark.parametrize("sampled", [SOME, ALL])
@pytest.mark.parametrize("method", ["subn+", "dp-subn", "distdiffgen"])
def test_every_key_of_a_study(method, sampled):
    assert method in methods()
    check(read_study, tomllib.loads(study_text(method)), ODD, sampled=sampled)


@pytest.mark.parametrize("odd", ["[]", "{}", "[0, 0]", "1", "true"])
def test_a_method_or_a_kind_of_source_that_is_no_text(tmp_path, odd):
    with pytest.raises(InputError, match="study: method: expected a text"):
        Study.from_toml(study_text("subn+").replace('method = "subn+"', f"method = {odd}"))
    with pytest.raises(InputError, match="source: kind is"):
        settings_reader(tmp_path, "party")(f"{PARTY}[source]\nkind = {odd}\n")


@pytest.mark.parametrize("sampled", [SOME, ALL])
def test_every_key_of_a_schema(sampled):
    check(read_schema, tomllib.loads(SCHEMA), ODD, sampled=sampled)


@pytest.mark.parametrize("sampled", [SOME, ALL])
def test_every_key_of_a_policy(sampled):
    check(Policy.from_toml, tomllib.loads(SAMPLE), ODD, sampled=sampled)


@pytest.mark.parametrize("sampled", [SOME, ALL])
def test_every_setting_of_a_curator(tmp_path, sampled):
    read = settings_reader(tmp_path, "curator")
    check(read, tomllib.loads(CURATOR), ODD, sampled=sampled)


@pytest.mark.parametrize("sampled", [SOME, ALL])
@pytest.mark.parametrize("kind", SOURCES)
def test_every_setting_of_a_party(tmp_path, kind, sampled):
    (tmp_path / "rows.csv").write_text("GESCHL;a;id\n1;1;1\n")
    text = f'{PARTY}[source]\nkind = "{kind}"\n{SOURCES[kind]}'
    check(settings_reader(tmp_path, "party"), tomllib.loads(text), ODD, sampled=sampled)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Make a release of a study, and one of a single owner."""
    folder = tmp_path_factory.mktemp("made")
    rows = "".join(f"{'Male' if i % 3 else 'Female'},{i % 70}\n" for i in range(60))
    (folder / "rows.csv").write_text("sex,age\n" + rows)
    (folder / "schema.toml").write_text(
        '[[attribute]]\nname = "sex"\nkind = "categorical"\nvalues = ["Female", "Male"]\n'
        '[[attribute]]\nname = "age"\nkind = "integer"\nmin = 0\nmax = 79\nbins = 4\n'
    )
    table = [str(folder / "rows.csv"), "--schema", str(folder / "schema.toml"), "--epsilon", "1"]
    study = ["--parties", "2", "--method", "floor", "--aggregation", "masked"]
    assert main(["simulate", *table, *study, "--out", str(folder / "several")]) == 0
    single = ["--method", "privbayes", "--out", str(folder / "one")]
    assert main(["synthesize", *table, *single]) == 0
    return folder


@pytest.mark.parametrize("sampled", [SOME, ALL])
def test_every_key_of_a_manifest(made, sampled):
    manifest = json.loads((made / "several" / "manifest.json").read_text())
    read = Manifest.from_bytes
    check(read, manifest, OF_JSON, write=lambda it: json.dumps(it).encode(), sampled=sampled)


@pytest.mark.parametrize("sampled", [SOME, ALL])
def test_every_key_of_a_signature(sampled):
    identity = Identity.generate(SeededRandomSource("odd"))
    signature = Signer(role=SignerRole.CURATOR, name="hub", identity=identity).sign(b"manifest")
    document = json.loads(signature.to_bytes())

    def read(data):
        Signature.from_bytes(data, signature.file).require(b"manifest")

    check(read, document, OF_JSON, write=lambda it: json.dumps(it).encode(), sampled=sampled)


@pytest.mark.parametrize("file", ["privacy.json", "model.json", "transcript.json"])
@pytest.mark.parametrize("name", ["several", "one"])
@pytest.mark.parametrize("sampled", [pytest.param(SAMPLED_RELEASES, id="some"), ALL])
def test_every_key_of_a_release(made, tmp_path, name, file, sampled):
    """Verify, load and describe releases whose maker wrote something odd."""
    if not (made / name / file).exists():
        pytest.skip("a release of a single owner has no transcript")
    folder = tmp_path / "release"
    shutil.copytree(made / name, folder)
    manifest = Manifest.from_bytes((folder / "manifest.json").read_bytes())

    def read(text):
        (folder / file).write_text(text)
        (folder / "manifest.json").unlink()
        study = None if manifest.study is None else bytes.fromhex(manifest.study)
        finish(folder, study=study, method=manifest.method, date=manifest.date, signer=None)
        verify(folder, unsigned=True)
        load(folder)

    check(read, json.loads((folder / file).read_text()), OF_JSON, write=json.dumps, sampled=sampled)
