"""The operator is told of studies that wait."""

import datetime as dt
from concurrent.futures import ThreadPoolExecutor

from common.errors import LocalError
from common.service.alerts import Hook
from common.wording import moment
from curator.alerting import Alerting
from curator.upkeep import Upkeep, WaitingLimits
from tests.unit.curator.conftest import HOUR, NOW, start


class Hooked:
    """A hook that fails as often as it is told to, and remembers what it took."""

    def __init__(self, failures=0):
        self.failures, self.taken = failures, []

    def tell(self, event):
        if self.failures:
            self.failures -= 1
            raise LocalError("the webhook did not take an event: refused")
        self.taken.append((event["event"], event["words"]))


def test_the_operator_is_told_of_a_waiting_an_overdue_and_an_ended_study(stage, caplog):
    studies, hook = stage.studies(), Hooked(failures=1)
    start(stage, studies)
    limits = WaitingLimits(deadline=HOUR, warning=HOUR / 6, end_overdue=False)
    with ThreadPoolExecutor(1) as workers:
        upkeep = Upkeep(studies, limits, alerting=Alerting(stage.store, hook, workers))
        for minutes in (1, 10, 60):
            stage.now += dt.timedelta(minutes=minutes)
            upkeep.look()
        studies.known(stage.study.digest).abort("enough")
        while stage.store.alerts():
            upkeep.look()
    since = f"it waits for east, north since {moment(NOW.isoformat())}"
    assert hook.taken == [("waiting", since), ("overdue", since), ("failed", "enough")]
    assert "the webhook did not take an event: refused" in caplog.text, "and is asked again"


def test_without_a_hook_events_are_dropped(stage):
    studies = stage.studies()
    start(stage, studies)
    studies.known(stage.study.digest).abort("enough")
    assert len(stage.store.alerts()) == 1
    with ThreadPoolExecutor(1) as workers:
        Alerting(stage.store, Hook(), workers).look(stage.now)
    assert stage.store.alerts() == []
