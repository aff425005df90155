"""The largest legal value of every number in a study: what a node spends before an approval.

Every study here is read, compared with the policy, opened on the node's rows and gone through, as
an invited node does it, in a process with a limit of memory; the processor time of each and the
peak of memory so far are measured.
"""

import json
import subprocess
import sys
from dataclasses import dataclass

import pytest

from common.crypto.identities.identity import Identity
from common.privacy.randomness import SeededRandomSource
from common.schema import limits

MOST_MIB = 1_500
MOST_CPU_S = 60  # about 20 on a machine with nothing else to do

NODE = """
import json, re, resource, sys, time
from dataclasses import replace
from pathlib import Path
from common.errors import InputError, PolicyError
from common.methods.registry import run_of
from common.study.document import Study
from party.app import open_rows
from party.owner.dry_run import dry_run
from party.owner.policy import Policy
from party.sources.settings import SourceSettings
texts, folder, at_sight = json.load(sys.stdin)
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
folder, spent = Path(folder), []
for text in texts:
    began = time.process_time()
    try:
        study = Study.from_toml(text)
        table = {"kind": "csv", "path": "rows.csv", "person": "id"}
        source = SourceSettings.from_table(table, folder=folder, environment={})
        policy = Policy.from_toml('[budget]\\nepsilon_per_study = "1"\\nepsilon_in_total = "4"\\n')
        reasons = policy.reasons_at_sight(
            study, party="p0", identity=study.members[0].identity, curator=None
        )
        if not (at_sight and reasons):
            open_rows(source, replace(study, schema=study.schema.forgiven()), "p0", folder)
            dry_run(study, "p0", begin=run_of)
        outcome = f"refused at sight: {reasons}" if at_sight and reasons else "done"
    except (InputError, PolicyError) as error:
        outcome = str(error)
    # Of this program: ru_maxrss would begin with what its parent had when it forked.
    (peak_kib,) = re.findall(r"VmHWM:\\s+([0-9]+) kB", Path("/proc/self/status").read_text())
    spent.append([outcome, time.process_time() - began, int(peak_kib) >> 10])
json.dump(spent, sys.stdout)
"""


def integers(columns, values):
    return "".join(
        f'[[attribute]]\nname = "x{number}"\nkind = "integer"\nmin = 0\nmax = {values - 1}\n'
        f"bins = {values}\n"
        for number in range(columns)
    )


def document(attributes, head="", *, parties=3, rows=1000, epsilon="1", settings=""):
    """A study.toml, as text."""
    lines = [f'name = "s"\nepsilon = "{epsilon}"\n{head}']
    for number in range(parties):
        identity = Identity.generate(SeededRandomSource(number)).public.text
        lines.append(f'[[party]]\nname = "p{number}"\nrows = {rows}\nidentity = "{identity}"')
    return "\n".join([*lines, settings, attributes])


DEEP = integers(15, 1 << 16)
WIDE = integers(limits.MOST_ATTRIBUTES, 2)
BITS = integers(limits.MOST_ATTRIBUTES, 2000)
FEW = integers(4, 3)
ROWS = limits.MOST_ROWS // 3
PEOPLE = f"rows_per_person = {ROWS}\nowners_per_person = 3\n"
CELLS = f"[dp-ccbn]\nmost_cells = {1 << 26}\n"
MANY = f"[dp-subn]\nmost_cells = {1 << 22}\nmost_candidate_cells = {1 << 28}\nmost_parents = 16\n"
TREE = '[distdiffgen]\ntarget = "x0"\ndivisions = 200\nchoices = "{}"\nmost_cells = 16777216\n'


def method(name, more=""):
    return f'method = "{name}"\n{more}'


QUICK = {
    "rows of people": document(FEW, PEOPLE, rows=ROWS),
    "rows of people in 500 columns": document(WIDE, "rows_per_person = 1\n", rows=ROWS),
    "synthetic rows": document(FEW, f"output_rows = {limits.MOST_ROWS}\n"),
    "the smallest epsilon": document(WIDE, epsilon="1e-9"),
    "the smallest epsilon for 500 tables": document(
        WIDE, method("floor", "rows_per_person = 5\n"), epsilon="1e-9"
    ),
    "an epsilon of 8,000 digits": document(FEW, epsilon=f"1{'0' * 3999}/{'3' * 4000}"),
    "the smallest delta": document(FEW, f'delta = "1/{"9" * 4000}"\n'),
    "500 bits of dp-ccbn": document(WIDE, method("dp-ccbn"), rows=10**9),
    "the cells of dp-ccbn": document(WIDE, method("dp-ccbn"), rows=10**9, settings=CELLS),
    "models of 1,000 owners": document(
        integers(30, 4), method("independent"), parties=1000, rows=10**7
    ),
}
SLOW = {
    "the largest epsilon": document(WIDE, epsilon="1e9"),
    "deep columns of independent": document(DEEP, method("independent"), rows=10**9),
    "useful models": document(integers(100, 10_000), method("independent"), epsilon="1e9"),
    "5,500 bits of independent": document(BITS, method("independent", 'encoding = "binary"\n')),
    "deep columns": document(DEEP, rows=10**9),
    "290 bits of dp-ccbn": document(integers(290, 2), method("dp-ccbn"), rows=10**9),
    "colluders and cohorts": document(
        integers(30, 4), method("dp-subn", "colluders = 999\ncohorts = 1000\n"), parties=1000
    ),
    "the cells of dp-subn": document(integers(30, 16), method("dp-subn"), settings=MANY),
    "divisions together": document(
        DEEP, method("distdiffgen"), parties=2, settings=TREE.format("together")
    ),
    "divisions in turn": document(
        DEEP, method("distdiffgen"), parties=2, settings=TREE.format("in turn")
    ),
}


@dataclass(frozen=True)
class Spent:
    outcome: str
    cpu_s: float
    peak_mib: int


def before_approval(texts, folder, *, at_sight=True):
    """What a node does with invitations, one after another, and what each takes."""
    columns = [f"x{number}" for number in range(limits.MOST_ATTRIBUTES)]
    rows = [",".join(["id", *columns])]
    rows += [",".join([str(number), *("01"[number % 2] * len(columns))]) for number in range(20)]
    (folder / "rows.csv").write_text("\n".join(rows) + "\n")
    ran = subprocess.run(
        [sys.executable, "-c", NODE], input=json.dumps([texts, str(folder), at_sight]),
        capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr[-2000:]
    return [Spent(*each) for each in json.loads(ran.stdout)]


def check_little(spent):
    assert spent.cpu_s < MOST_CPU_S, spent
    assert spent.peak_mib < MOST_MIB, spent


REFUSED = {
    "rows of people": "(max_rows)",
    "500 bits of dp-ccbn": "the tables that all its steps ask for: at most",
    "the smallest epsilon for 500 tables": "epsilon: an answer needs noise of scale",
}


def test_an_invitation_takes_little_and_is_refused_by_name(tmp_path):
    spent = before_approval(list(QUICK.values()), tmp_path)
    for name, each in zip(QUICK, spent, strict=True):
        check_little(each)
        assert REFUSED.get(name, "") in each.outcome, name


@pytest.mark.slow
@pytest.mark.parametrize("text", SLOW.values(), ids=SLOW)
def test_an_invitation_near_the_limits_takes_little(tmp_path, text):
    (spent,) = before_approval([text], tmp_path)
    check_little(spent)


def test_a_node_without_a_limit_of_rows_counts_public_rows_in_little_memory(tmp_path):
    """As an owner's review does it, whatever the policy says at sight."""
    text = document(FEW, "rows_per_person = 1\n", rows=ROWS)
    (spent,) = before_approval([text], tmp_path, at_sight=False)
    check_little(spent)
    assert spent.outcome == "done"
    assert spent.peak_mib < 400
