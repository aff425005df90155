"""`parley methods`: every method, and every key of --set with its default."""

from dataclasses import fields

import pytest

from common.methods.distdiffgen.script import DistDiffGenSettings as DistDiffGen
from common.methods.dp_ccbn import CcbnSettings as DpCcbn
from common.methods.dp_subn.decisions import SubnSettings as DpSubn
from common.methods.registry import methods


def test_every_setting_is_listed_with_its_default(parley):
    said = parley("methods").out
    for method in methods().values():
        assert f"{method.name}: {method.summary}\n" in said
        for key, setting in method.settings.items():
            assert f"  --set {key}={setting.default}\n      {setting.meaning}\n" in said


def test_a_script_reads_the_same(parley):
    listed = {each["name"]: each["settings"] for each in parley("methods", "--json").json}
    assert set(listed) == set(methods())
    assert listed["subn+"]["dependence"]["default"] == "unknown"
    assert listed["floor"] == {}


@pytest.mark.parametrize(
    ("method", "kind"), [("dp-subn", DpSubn), ("dp-ccbn", DpCcbn), ("distdiffgen", DistDiffGen)]
)
def test_the_default_that_is_said_is_the_one_that_is_used(method, kind):
    settings = methods()[method].settings
    for each in fields(kind):
        said = settings[each.name].default
        if said in ("required", "by usefulness"):
            continue
        written = int(said) if said.isdigit() and each.type == "int" else said
        assert settings[each.name].read(written) == each.default
    assert {each.name for each in fields(kind)} == set(settings)
