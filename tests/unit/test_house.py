"""The house keeps its own rules: quiet imports, no addresses, pinned versions, known rooms."""

import ast
import graphlib
import re
import subprocess
import sys
import tomllib
from functools import cache
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.harness.sources import ROOMS, ROOT, parsed, sources

PACKAGES = (*ROOMS, "benchmarks")


@cache
def committed_files():
    listing = subprocess.run(
        ["git", "-C", ROOT, "ls-files", "-z"], capture_output=True, text=True, check=False
    )
    if listing.returncode:
        pytest.skip("not a git checkout, so there are no committed files to look at")
    return [path for path in listing.stdout.split("\0") if path and (ROOT / path).is_file()]


def module_name(path):
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def imported_packages(tree):
    """The top-level packages a source imports, wherever in it."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.update(alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.split(".")[0])
    return found


def all_imports(tree):
    """Every (module, names) that a source imports: at its top, in a function, or for its types."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            yield node.module, [alias.name for alias in node.names]
        elif isinstance(node, ast.Import):
            yield from ((alias.name, ()) for alias in node.names)


def needs_of(trees):
    """Which modules each module names; a package is named by whoever is outside of it."""
    known = {module_name(path) for path in trees}
    found = {}
    for path, tree in trees.items():
        module, needs = module_name(path), set()
        for source, names in all_imports(tree):
            named = {f"{source}.{name}" for name in names}
            for target in named & known | (set() if names and named <= known else {source}):
                parts = target.split(".")
                above = {".".join(parts[:end]) for end in range(1, len(parts))}
                needs |= {each for each in above if not f"{module}.".startswith(f"{each}.")}
                needs.add(target)
        found[module] = (needs & known) - {module}
    return found


# Which module is first does not matter: none needs itself.
IMPORT_EACH = """
import logging, os, sys, threading, warnings
root, *modules = sys.argv[1:]
sys.path.insert(0, root)
warnings.simplefilter("error")
environment = dict(os.environ)
for module in modules:
    __import__(module)
    assert threading.active_count() == 1, f"importing {module} starts a thread"
    assert not logging.getLogger().handlers, f"importing {module} configures logging"
    assert dict(os.environ) == environment, f"importing {module} changes the environment"
"""


def import_each(root, modules, folder):
    return subprocess.run(
        [sys.executable, "-c", IMPORT_EACH, str(root), *modules],
        capture_output=True,
        text=True,
        cwd=folder,
        check=False,
    )


@cache
def import_graph():
    return needs_of({path: parsed(path) for path in sources(*PACKAGES)})


def loaded_with(module):
    """Return all modules that a module needs, and those that they need."""
    waiting, seen = [module], set()
    while waiting:
        for name in import_graph()[waiting.pop()] - seen:
            seen.add(name)
            waiting.append(name)
    return seen


# The last one is run by the Python of an environment of its own, which has the peer's library.
NOT_FOR_US = ("/__main__.py", "/subn_mbi_worker.py", "/package_tables_worker.py")


def importable():
    return [module_name(path) for path in sources(*PACKAGES) if not path.endswith(NOT_FOR_US)]


def test_no_module_needs_itself_wherever_its_imports_stand():
    assert len(import_graph()) > 300
    graphlib.TopologicalSorter(import_graph()).prepare()


@pytest.mark.parametrize(
    ("first", "second", "package"),
    [
        ("import guest.b", "from guest import a", ""),
        ("from guest.b import x", "if True:\n    import guest.a", ""),
        ("from outside import x", "", "from guest.a import y"),  # outside loads guest by guest.b
    ],
)
def test_a_cycle_is_noticed(first, second, package):
    texts = {"guest/a": first, "guest/b": second, "guest/__init__": package,
             "outside": "from guest.b import z"}  # fmt: skip
    graph = needs_of({f"{name}.py": ast.parse(text) for name, text in texts.items()})
    with pytest.raises(graphlib.CycleError):
        graphlib.TopologicalSorter(graph).prepare()


def test_imports_of_functions_and_of_types_count():
    of_types = "if TYPE_CHECKING:\n    import a\ndef f():\n    import c\n"
    texts = {"a": "from b import x", "b": of_types, "c": ""}
    graph = needs_of({f"{name}.py": ast.parse(text) for name, text in texts.items()})
    assert graph == {"a": {"b"}, "b": {"a", "c"}, "c": set()}


def test_a_class_name_stands_for_one_class():
    classes = [
        (node.name, path)
        for path in sources()
        for node in parsed(path).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    ]
    places = {}
    for name, path in classes:
        places.setdefault(name, []).append(path)
    assert {name: paths for name, paths in places.items() if len(paths) > 1} == {}


# Imports inside functions, each to save start-up time. This list gets shorter, and never longer.
DEFERRED = """
common.schema.schema: common.schema.decoder
common.schema.schema: common.schema.infer
curator.app: curator.publisher
parley.__main__: parley.cli
parley.cli.commands.party: parley.cli.commands.verify
parley.cli.commands.party: party.releases
parley.cli.commands.party: party.ui.inbox
parley.cli.commands.party: party.ui.site
parley.cli.commands.party_records: party
party.releases: common.release.verify
party.releases: party.countersigning
"""


def deferred():
    """Every own import that stands in a function, as module: imported."""
    return {
        f"{module_name(path)}: {node.module}"
        for path in sources(*PACKAGES)
        for function in ast.walk(parsed(path))
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.ImportFrom) and node.module.split(".")[0] in PACKAGES
    }


def test_the_list_of_deferred_imports_only_gets_shorter():
    assert deferred() == set(DEFERRED.split("\n")[1:-1])


def test_no_import_leaves_a_trace(tmp_path):
    done = import_each(ROOT, importable(), tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("source", "symptom"),
    [
        ("print('hello')", "hello"),
        ("import logging; logging.basicConfig()", "configures logging"),
        (
            "import threading, time as t; threading.Thread(target=t.sleep, args=(1,)).start()",
            "starts a thread",
        ),
        ("import os; os.environ['GUEST'] = '1'", "changes the environment"),
        ("import warnings; warnings.warn('old')", "old"),
    ],
)
def test_an_import_with_a_side_effect_is_noticed(source, symptom, tmp_path):
    (tmp_path / "guest.py").write_text(source)
    done = import_each(tmp_path, ["json", "guest"], tmp_path)
    assert symptom in done.stdout + done.stderr


@pytest.mark.parametrize(("who", "other"), [("party", "curator"), ("curator", "party")])
def test_the_command_of_one_side_loads_nothing_of_the_other(who, other):
    loaded = loaded_with(f"parley.cli.commands.{who}")
    assert f"{who}.app" in loaded
    assert [module for module in loaded if module.split(".")[0] == other] == []


# Written in pieces, so that this file does not hold what it looks for.
FORBIDDEN = re.compile(
    "|".join(
        [
            "index" + "[-_]url",
            "(?i:pip_" + "index)",
            "find" + r"-links[=\s]+\S*://",  # a folder is no address
            "trusted" + "-host",
            "/simple" + "(?:/|$)",
            "files[.]python" + "hosted",
            r"(?<![\w.~-])/(?:work|root|Users|home/(?!parley\b)\w+)/",
        ]
    ),
    re.MULTILINE,
)


def test_no_committed_file_holds_an_index_address_or_a_machine_path():
    found = [
        f"{path}: {match.group()}"
        for path in committed_files()
        for match in FORBIDDEN.finditer((ROOT / path).read_text(errors="replace"))
    ]
    assert found == []


@pytest.mark.parametrize(
    "line",
    [
        "--" + "index" + "-url https://example.org",
        "registry = https://example.org/" + "simple/",
        "PIP_" + "INDEX=here",
        "--find" + "-links https://example.org/wheels",
        "cd /" + "work/main",
        "see /" + "home/someone/data.csv",
    ],
)
def test_an_address_or_a_machine_path_would_be_noticed(line):
    assert FORBIDDEN.search(line)


def test_no_lock_file_with_addresses_is_committed():
    names = {Path(path).name for path in committed_files()}
    assert not names & {"uv.lock", "poetry.lock", "Pipfile.lock", "pdm.lock"}
    assert not [name for name in names if name.startswith("pylock")]


def pinned_versions():
    pins = {}
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        match = re.fullmatch(r"([A-Za-z0-9][A-Za-z0-9._-]*)==([0-9][A-Za-z0-9.+!]*)", line)
        assert match, f"not name==version: {line}"
        name = canonicalize_name(match[1])
        assert name not in pins, f"pinned twice: {name}"
        pins[name] = match[2]
    return pins


def test_constraints_hold_names_and_versions_only():
    assert pinned_versions()


def required():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"].values()
    lines = [*project["project"]["dependencies"], *(line for extra in extras for line in extra)]
    found = [Requirement(line) for line in [*lines, *project["build-system"]["requires"]]]
    return [each for each in found if each.name != "parley"]  # an extra may hold another


def test_every_dependency_is_pinned_to_a_version_it_allows():
    pins = pinned_versions()
    for requirement in required():
        version = pins.get(canonicalize_name(requirement.name))
        assert version, f"{requirement.name} is not in constraints.txt"
        assert requirement.specifier.contains(version), f"{requirement} excludes {version}"


def test_the_dependencies_of_dependencies_are_pinned_too():
    pins = pinned_versions()
    waiting, seen = [canonicalize_name(each.name) for each in required()], set()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        try:
            lines = metadata.requires(name) or []
        except metadata.PackageNotFoundError:  # an extra that this environment does without
            continue
        needed = [Requirement(line) for line in lines]
        waiting += [
            canonicalize_name(each.name)
            for each in needed
            if each.marker is None or each.marker.evaluate({"extra": ""})
        ]
    assert sorted(seen - pins.keys()) == []


def test_phe_is_imported_by_its_one_module_only():
    importers = {path for path in sources() if "phe" in imported_packages(parsed(path))}
    assert importers <= {"common/crypto/paillier/keys.py"}


def test_an_import_is_found_wherever_it_stands():
    source = "def f():\n    from phe.paillier import x\nimport numpy.random as r\nfrom . import y\n"
    assert imported_packages(ast.parse(source)) == {"phe", "numpy"}


def test_no_service_or_algorithm_draws_from_numpys_generators():
    """Randomness comes from a RandomSource that is handed in, see common/privacy/randomness.py."""
    found = [
        path
        for path in sources("common", "curator", "party")
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Attribute)
        and node.attr == "random"
        and isinstance(node.value, ast.Name)
        and node.value.id in ("np", "numpy")
    ]
    assert found == []


def test_modules_have_names_that_say_something_and_stay_readable():
    for path in sources(*PACKAGES):
        assert Path(path).stem not in ("utils", "util", "helpers", "misc", "constants"), path
        lines = len((ROOT / path).read_text().splitlines())
        assert lines <= 500, f"{path} has {lines} lines; split it"


# What a docstring begins with that names the result instead of saying what the function does.
NOUN_FIRST = re.compile(
    "(The|An?|What|Whether|How|Which|Where|Who|Why|Whom|Whose|When|Every|One|Of|All|Each|For|Those|"
    "These|This|That|Everything|Any|In|As|At|No|Another|Both|Nothing|Something|From|On|Its?|Not|"
    "Only|Some)\\b"
)


def noun_first(tree):
    """Functions whose docstring does not begin with a verb; a property may be a noun."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        decorators = {ast.unparse(each) for each in node.decorator_list}
        text = ast.get_docstring(node) or ""
        if NOUN_FIRST.match(text) and not decorators & {"property", "cached_property"}:
            yield f"{node.name}: {text.splitlines()[0]}"


def test_a_docstring_without_a_verb_is_noticed():
    source = (
        'class A:\n def f(self):\n  """The sum."""\n @property\n def g(self):\n  """The sum."""'
    )
    assert list(noun_first(ast.parse(source))) == ["f: The sum."]


def test_docstrings_of_functions_begin_with_a_verb():
    found = [f"{path}: {each}" for path in sources(*PACKAGES) for each in noun_first(parsed(path))]
    assert found == []
