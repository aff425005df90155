"""DP-SUBN [Su16]: five phases, and the decisions between them."""

from common.methods.dp_subn.decisions import SETTINGS, decisions
from common.methods.dp_subn.forecast import forecast
from common.methods.dp_subn.script import dp_subn
from common.study.method import Method

METHOD = Method(
    name="dp-subn",
    summary="a network, updated owner by owner",
    script=dp_subn,
    single_turns=True,
    replaces_noise=True,
    settings=SETTINGS,
    decisions=decisions,
    forecast=forecast,
    place=2,
)
