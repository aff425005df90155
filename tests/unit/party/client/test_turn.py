"""How long a study keeps its seat: as long as it has work, or as no other study waits for one."""

import pytest

from common.service.database import Database
from common.study.progress import StudyState, StudySummary
from party.client.session import PartySession
from party.client.turn import Limits, Turn
from tests.unit.party.test_what_a_curator_sees import Watching, context_of, study_about

LIMITS = Limits(idle_s=1, turn_s=10, listening_s=60, stalled_s=600)


class Silent(Watching):
    """A curator that has said all it will; time passes while it is listened to."""

    def __init__(self, study, *, wanted):
        super().__init__(study)
        self.wanted, self.now, self.stopped_at = wanted, 0, None

    def work(self, study, *, received):
        while self.stopped_at is None:
            assert self.now < 2 * LIMITS.stalled_s, "it listens for ever"
            self.now += 1
            self.turn.cede(contested=self.wanted)
        yield from ()

    def stop_listening(self):
        self.stopped_at = self.now


@pytest.mark.parametrize(
    ("queued", "wanted", "listens_s"),
    [(0, True, 1), (0, False, 60), (1, True, 600), (1, False, 600)],
    ids=["others wait", "no other waits", "a message is due, others wait", "a message is due"],
)
def test_a_study_that_hears_nothing_gives_its_seat_back(tmp_path, queued, wanted, listens_s):
    study = study_about(99)
    curator = Silent(study, wanted=wanted)
    database = Database(tmp_path / "party.db")
    curator.turn = Turn(LIMITS, monotonic=lambda: curator.now)
    session = PartySession(study.digest, context_of(tmp_path, database, automatic=True))
    summary = StudySummary(
        study=study.digest, name="ages", state=StudyState.WAITING, approved=False, submitted=0,
        acknowledged=0, queued=queued,
    )  # fmt: skip
    assert session.take_turn(curator.turn, curator, summary) is None
    assert curator.stopped_at == listens_s
    database.close()
