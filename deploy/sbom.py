"""Write the bill of materials of what `pip install parley` brings, as CycloneDX JSON.

The tool `cyclonedx-py` describes the environment that runs this script. The environment of
`make dev` also has the tools of developers, so this script keeps the packages that the dependencies
in pyproject.toml lead to, and no address and no path of the machine: two machines with the versions
of constraints.txt write the same bytes.

    python deploy/sbom.py dist/parley.cdx.json
"""

import json
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
# What names places: download pages, folders of editable installations, pages of the tools.
PLACES = ("externalReferences", "properties", "evidence")


def required_names(lines: Iterable[str]) -> set[str]:
    """Return the packages that requirements ask for here, extras left out."""
    requirements = [Requirement(line) for line in lines]
    return {
        canonicalize_name(each.name)
        for each in requirements
        if each.marker is None or each.marker.evaluate({"extra": ""})
    }


def runtime_graph() -> dict[str, set[str]]:
    """Return what Parley needs to run: for every package, the packages that it needs itself."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    direct = required_names(project["dependencies"])
    graph, waiting = {canonicalize_name(project["name"]): direct}, list(direct)
    while waiting:
        name = waiting.pop()
        if name not in graph:
            graph[name] = required_names(metadata.requires(name) or [])
            waiting += graph[name]
    return graph


def without_places(value: Any) -> Any:  # noqa: ANN401  # any JSON
    """Return a JSON value without the keys of PLACES, at any depth."""
    if isinstance(value, dict):
        return {key: without_places(item) for key, item in value.items() if key not in PLACES}
    return [without_places(item) for item in value] if isinstance(value, list) else value


def bill_of_materials() -> dict[str, Any]:
    """Return the tool's document, reduced to what runs."""
    tool = [sys.executable, "-m", "cyclonedx_py", "environment", "--output-reproducible"]
    options = ["--pyproject", "pyproject.toml", "--sv", "1.6", "--of", "JSON", "-o", "-"]
    done = subprocess.run(  # noqa: S603  # our own words
        [*tool, *options], cwd=ROOT, capture_output=True, text=True, check=True
    )
    document = without_places(json.loads(done.stdout))
    root = document["metadata"]["component"]
    graph = runtime_graph()
    document["components"] = [
        each
        for each in document["components"]
        if canonicalize_name(each["name"]) in graph and each["name"] != root["name"]
    ]
    references = {
        canonicalize_name(each["name"]): each["bom-ref"] for each in document["components"]
    }
    references[canonicalize_name(root["name"])] = root["bom-ref"]
    document["dependencies"] = [
        {"ref": references[name], "dependsOn": sorted(references[need] for need in needs)}
        for name, needs in sorted(graph.items())
    ]
    return document


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.parent.mkdir(parents=True, exist_ok=True)
    document = bill_of_materials()
    target.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n")
    print(f"{target}: {len(document['components'])} packages")  # noqa: T201  # its result
