"""Every command that the documentation shows is run, page by page, in a folder of its own.

A page's `sh` and `python` blocks are run in order, as one script that stops at the first failure:
the blocks that a browser shows, as a Markdown parser finds them. What a reader must not be bothered
with is in comments of the page, but not on pages that readers paste:

    <!-- behind the scenes
    commands that set the stage: another owner's, or files that the page takes for granted
    -->

    <!-- not run: needs docker -->      directly above a block that cannot be run here

The folder has people.csv, the same people dealt out as north.csv, east.csv and south.csv and as
north/rows.csv and so on, and example-schema.toml. Port 7443 becomes a free one.

Two pages are also run lightly, by default: fewer rows, the quickest method, and no study over a
network, which other tests run.
"""

import os
import re
import socket
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd
import pytest
from markdown_it import MarkdownIt

from parley.simulation.population import demo_schema_toml, make_population
from tests.harness.warm_commands import warm_commands

ROOT = Path(__file__).resolve().parents[2]
ROWS = {"north": 400, "east": 300, "south": 500}
LIGHT = {"README.md": "--transport grpc", "docs/quickstart-analyst.md": None}  # and where to stop
REASONS = (
    "needs docker", "needs a cluster", "needs systemd", "needs a database", "needs Java",
    "installs software", "makes an environment of its own", "a fragment", "takes minutes",
)  # fmt: skip
SAID = {  # words that a page's commands must have printed
    "README.md": ["report.html", "countersigned by party 'south'", "verified over-grpc"],
    "docs/release-bundle.md": ["countersigned by party 'north'", '"verified": true'],
    "docs/first-table.md": ["fits the schema", "What may I conclude?", "2-way marginals"],
    "docs/dashboard.md": ["dashboard on http://127.0.0.1:", "/login#token="],
    "docs/planning.md": ["Expected average distance", "no noise"],
    "docs/running-a-study.md": [
        "What leaves the building", "approved by the owner", "synthetic.csv", "report.html",
        "study.toml", "verified", "Our policy allows it", "countersigned by party 'north'",
    ],
}  # fmt: skip

PASTED = (  # pages that a reader can paste as they are rendered, into an empty folder
    "README.md", "docs/first-table.md", "docs/quickstart-analyst.md", "docs/running-a-study.md",
)  # fmt: skip

COMMENT = re.compile(
    r"<!-- (?P<kind>not run: |behind the scenes\n)(?P<content>.*?) ?-->", re.DOTALL
)


@dataclass(frozen=True)
class Block:
    page: str
    kind: str
    code: str
    reason: str | None = None


def pages():
    listing = [ROOT / "README.md", *ROOT.glob("docs/*.md"), *ROOT.glob("deploy/**/*.md")]
    return sorted(path.relative_to(ROOT).as_posix() for path in listing)


def blocks(page, text=None):
    """The blocks of a page that are meant to be typed, and those behind the scenes."""
    found, reason = [], None
    for token in MarkdownIt().parse((ROOT / page).read_text() if text is None else text):
        comment = COMMENT.match(token.content) if token.type == "html_block" else None
        if comment is not None and comment["kind"] == "behind the scenes\n":
            found.append(Block(page, "sh", comment["content"]))
        elif token.type == "fence" and token.info in ("sh", "python"):
            found.append(Block(page, token.info, token.content, reason))
        reason = comment["content"] if comment and comment["kind"] == "not run: " else None
    return found


def lightly(page):
    """The blocks of a page before the given words, made cheap."""
    found = []
    for block in blocks(page):
        if LIGHT[page] is not None and LIGHT[page] in block.code:
            break
        code = re.sub(r"--rows \d+", "--rows 1500", block.code)
        code = re.sub("(parley simulate .*?)--epsilon 1", r"\1--epsilon 1 --method floor", code)
        found.append(replace(block, code=code.replace("epsilon=1,", 'epsilon=1, method="floor",')))
    return found


def script(shown, port):
    lines = [
        "set -eu",
        "trap 'code=$?; kill $(jobs -p) 2>/dev/null || true; wait; exit $code' EXIT",
    ]
    for block in shown:
        if block.reason is None:
            python = f"python - <<'END_OF_BLOCK'\n{block.code}END_OF_BLOCK\n"
            lines.append(python if block.kind == "python" else block.code)
    return "\n".join(lines).replace("7443", str(port))


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture
def folder(tmp_path):
    here = tmp_path / "a reader"  # with a space: nobody promised that there is none
    (here / ".bin").mkdir(parents=True)
    for name, start in (("parley", "-P -m parley"), ("python", "-P")):
        command = here / ".bin" / name
        command.write_text(f'#!/bin/sh\nexec "{sys.executable}" {start} "$@"\n')
        command.chmod(0o755)
    return here


def furnish(here):
    """Put what most pages take for granted into the folder."""
    (here / "example-schema.toml").write_text(demo_schema_toml())
    owners = {owner: make_population(rows, seed=seed) for seed, (owner, rows) in
              enumerate(ROWS.items())}  # fmt: skip
    for owner, people in owners.items():
        (here / owner).mkdir()
        people.to_csv(here / f"{owner}.csv", index=False)
        people.to_csv(here / owner / "rows.csv", index=False)
    pd.concat(owners.values()).to_csv(here / "people.csv", index=False)


def run_blocks(shown, folder):
    environment = {
        **{k: v for k, v in os.environ.items() if not k.startswith("PARLEY_")},
        "PATH": f"{folder / '.bin'}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
    }
    done = subprocess.run(
        ["bash", "-c", script(shown, free_port())], cwd=folder, env=environment,
        capture_output=True, text=True, timeout=900,
    )  # fmt: skip
    logs = "".join(path.read_text() for path in folder.glob("**/log.jsonl"))
    assert done.returncode == 0, done.stdout + done.stderr + logs
    assert "FAIL" not in done.stdout
    assert "Traceback" not in done.stderr
    return done.stdout


RUN = [page for page in pages() if any(block.reason is None for block in blocks(page))]


@pytest.mark.slow
@pytest.mark.parametrize("page", RUN)
def test_the_commands_of_a_page_do_what_it_says(page, folder):
    if page not in PASTED:
        furnish(folder)
    said = run_blocks(blocks(page), folder)
    missing = [words for words in SAID.get(page, []) if words not in said]
    assert not missing, said


@pytest.mark.parametrize("page", LIGHT)
def test_the_first_commands_of_a_newcomer_work(page, folder):
    shown = lightly(page)
    assert sum(block.kind == "sh" for block in shown) >= 3
    with warm_commands(folder / ".bin"):
        assert "verified release" in run_blocks(shown, folder)


@pytest.mark.parametrize("page", PASTED)
def test_a_quick_start_hides_nothing(page):
    """What a browser shows is all there is: no commands in comments, no block left out."""
    text = (ROOT / page).read_text()
    assert "behind the scenes" not in text
    left = [block.code for block in blocks(page) if block.reason is not None]
    assert all(code.startswith("make ") for code in left)


def test_what_is_not_run_is_listed_with_a_reason():
    left = [block for page in pages() for block in blocks(page) if block.reason is not None]
    run = [block for page in pages() for block in blocks(page) if block.reason is None]
    for block in left:
        sys.stdout.write(f"not run: {block.page}: {block.reason}: {block.code.splitlines()[0]}\n")
    sys.stdout.write(f"{len(left)} blocks of {len(left) + len(run)} are not run\n")
    strange = [b for b in left if not b.reason.startswith(REASONS)]
    assert not strange, f"say why, beginning with one of {REASONS}"
    assert len(left) < len(run)


def test_commands_are_nowhere_but_in_blocks_that_are_run():
    """Another word after the fence would hide a block from the tests."""
    for page in pages():
        text = (ROOT / page).read_text()
        assert not re.search(r"^ *```(bash|shell|console|zsh|py)\b|^ +```", text, re.MULTILINE), (
            page
        )
        for kind, code in re.findall(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
            if kind not in ("sh", "python"):
                assert not re.search(r"^\$? *parley ", code, re.MULTILINE), f"{page}: {code}"
        prose = re.sub(r"^```.*?^```$|^<!--.*?-->$", "", text, flags=re.MULTILINE | re.DOTALL)
        assert not re.search(r"^ {4,}(parley|make|python) ", prose, re.MULTILINE), page


def test_the_make_targets_that_pages_name_exist():
    known = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for page in pages():
        named = re.findall(r"(?:^|`)make ([a-z-]+)\b(?!-)", (ROOT / page).read_text(), re.MULTILINE)
        assert set(named) <= known | {"bench-"}, page  # bench-NAME


def test_links_between_pages_lead_somewhere():
    for page in [*pages(), *(f"docs/reference/{p.name}" for p in ROOT.glob("docs/reference/*"))]:
        text = (ROOT / page).read_text()
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
            if "://" not in target:
                assert ((ROOT / page).parent / target).exists(), f"{page}: {target}"


def anchors(path):
    """The anchors of a page: its headings as a browser names them, and those written by hand."""
    text = path.read_text()
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    slugs = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
    return slugs | set(re.findall(r'<a id="([^"]+)">', text))


def test_links_into_a_page_lead_to_a_heading():
    for page in pages():
        for target, anchor in re.findall(r"\]\(([^)#\s:]*)#([^)]+)\)", (ROOT / page).read_text()):
            path = (ROOT / page).parent / target if target else ROOT / page
            assert anchor in anchors(path), f"{page}: {target}#{anchor}"


def test_the_index_names_every_page():
    index = (ROOT / "docs" / "README.md").read_text()
    found = {*ROOT.glob("docs/**/*.md"), *ROOT.glob("deploy/**/*.md")} - {ROOT / "docs/README.md"}
    names = {os.path.relpath(path, ROOT / "docs") for path in found}
    assert names <= set(re.findall(r"\]\(([^)]+)\)", index))
    assert "(docs/README.md)" in (ROOT / "README.md").read_text()


def test_a_page_is_read_as_a_reader_would():
    text = (
        "```sh\necho one\n```\n<!-- behind the scenes\necho two\n-->\n"
        "<!-- not run: needs docker -->\n```sh\ndocker\n```\n```toml\na = 1\n```\n"
        "```python\nprint(3)\n```\n"
    )
    assert [(b.kind, b.code, b.reason) for b in blocks("README.md", text)] == [
        ("sh", "echo one\n", None), ("sh", "echo two\n", None), ("sh", "docker\n", "needs docker"),
        ("python", "print(3)\n", None),
    ]  # fmt: skip
