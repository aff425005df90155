"""subn+: a few noisy sums, and one model fitted to all of them."""

from functools import partial

from common.methods.subn_plus.descent import descending
from common.methods.subn_plus.facts import SETTINGS, decisions
from common.methods.subn_plus.plans import clearest
from common.methods.subn_plus.script import measure
from common.study.method import Method

METHOD = Method(
    name="subn+",
    version=2,
    summary="few noisy sums, and one model",
    script=partial(descending, measure),
    encodings=("own",),
    settings=SETTINGS,
    decisions=decisions,
    clearest=clearest,
    only_sums=True,
    place=1,
)
