"""subn+: a few noisy sums, and one model fitted to all of them."""

from common.methods.subn_plus.descent import descending
from common.methods.subn_plus.script import measure
from common.methods.subn_plus.settings import decisions
from common.study.method import Method

METHOD = Method(
    name="subn+",
    summary="few noisy sums, and one model",
    script=descending(measure),
    encodings=("own",),
    decisions=decisions,
    only_sums=True,
    place=1,
)
