"""The setting of subn+: what a study takes as known about its columns."""

from __future__ import annotations

from common.schema.toml import one_of
from common.study.document import Study
from common.study.method import Decision, read_settings

UNKNOWN, EXPECTED = "unknown", "expected"  # whether columns depend


def expects_dependence(study: Study) -> bool:
    """Read the only setting: whether it is taken as known that columns depend.

    Raises:
        InputError: there is another setting, or another value.
    """
    found = read_settings(study, {"dependence": one_of((UNKNOWN, EXPECTED))})
    return bool(found.get("dependence") == EXPECTED)


def decisions(study: Study) -> list[Decision]:
    how = "expected: no sum is spent on finding out" if expects_dependence(study) else UNKNOWN
    return [Decision("dependence", how)]
