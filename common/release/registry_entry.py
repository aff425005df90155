"""A release as an entry for public registries of differentially private deployments.

Registries ask what was released, for whom, by which mechanism, and what exactly the epsilon
protects. All of that is in the privacy statement, the manifest and the study, so the entry is made
of these, and says nothing that the release does not.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from common.release.contents import open_release, read_json, read_text, read_whole
from common.release.folder import STATEMENT, STUDY
from common.release.manifest import MANIFEST, MOST_JSON_BYTES, Manifest

FORMAT = "parley registry entry 1"
_OF_A_STEP = (
    "step", "mechanism", "sensitivity_norm", "sensitivities", "scale", "variance", "epsilon", "rho",
)  # fmt: skip


def registry_entry(path: Path) -> dict[str, object]:
    with open_release(path) as contents:
        manifest = Manifest.from_bytes(read_whole(contents, MANIFEST, most=MOST_JSON_BYTES))
        statement = read_json(contents, STATEMENT)
        studied = STUDY in contents.sizes()
        study = tomllib.loads(read_text(contents, STUDY)) if studied else {}
    return entry_of(statement, study, date=manifest.date, digest=manifest.study)


def entry_of(
    statement: Mapping[str, Any], study: Mapping[str, Any], *, date: str, digest: str | None
) -> dict[str, object]:
    """Return the entry of a privacy.json and a study.toml, which is empty for one owner."""
    exact = statement["exact"]
    return {
        "format": FORMAT,
        "deployment": {
            "name": study.get("name", ""),
            "purpose": study.get("purpose", ""),
            "digest": digest,
            "date": date,
            "data_custodians": sorted(statement["parties"]),
            "software": f"parley {statement['versions']['parley']}",
            "product": "synthetic table",
            "private": statement["private"],
            "not_private_because": statement["not_private_because"],
        },
        "definition": {
            "model": "(epsilon, delta)" if statement["delta_delivered"] else "pure epsilon",
            "trust_model": _trust(len(statement["parties"])),
            "unit_of_privacy": statement["unit_of_privacy"],
            "neighbouring_relation": statement["neighbours"],
            "epsilon": statement["epsilon_delivered"],
            "epsilon_exact": exact["epsilon_delivered"],
            "delta": statement["delta_delivered"],
            "delta_exact": exact["delta"],
            "rho_exact": exact["rho"],
        },
        "mechanisms": [{key: step[key] for key in _OF_A_STEP} for step in statement["steps"]],
        "composition": {
            "within_the_release": "sequential, adaptive: what the steps cost adds up in "
            + statement["currency"],
            "across_releases": "releases add up; each owner's ledger has its own sum",
        },
        "adversaries": statement["adversaries"],
        "not_promised": statement["not_promised"],
        "sampler": statement["sampler"],
        "acceptance_criteria": statement["criteria"],
    }


def _trust(parties: int) -> str:
    if parties == 1:
        return "central: the owner of the rows adds the noise"
    return "distributed: owners add up noisy counts by secure sums, no party sees others' rows"
