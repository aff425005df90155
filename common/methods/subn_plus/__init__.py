"""subn+: a few noisy sums, and one model fitted to all of them."""

from common.methods.subn_plus.descent import descending
from common.methods.subn_plus.facts import SETTINGS
from common.methods.subn_plus.linked.descent import descending_linked
from common.methods.subn_plus.linked.plans import clearest_linked
from common.methods.subn_plus.linked.script import measure_linked
from common.methods.subn_plus.prospects import OF_SUBN, advice, decisions
from common.methods.subn_plus.prospects import clearest as clearest_single
from common.methods.subn_plus.script import measure
from common.study.document import Study
from common.study.method import Method
from common.study.script import Fit, Script


def script(study: Study) -> Script[Fit]:
    """Begin the script for people with their events, or for a single table."""
    if study.schema.events is not None:
        return descending_linked(measure_linked, study)
    return descending(measure, study)


def clearest(study: Study) -> Study:
    """Return a new study under the promise that is forecast to show more."""
    single = study.schema.events is None or study.analyses
    return clearest_single(study) if single else clearest_linked(study)


METHOD = Method(
    name="subn+",
    version=3,
    summary="few noisy sums, and one model",
    script=script,
    encodings=("own",),
    settings=SETTINGS,
    decisions=decisions,
    clearest=clearest,
    prospects=OF_SUBN.of,
    halving=OF_SUBN.halving,
    advice=advice,
    linked=True,
    analyses=True,
    only_sums=True,
    place=1,
)
