"""A curator that tells its parties different stories gets no sum out of them."""

from dataclasses import dataclass, field, replace
from fractions import Fraction

import pytest

from common.crypto.sums.plan import Aggregation, Noise
from common.crypto.sums.replacement import Coverages
from common.errors import RemoteProtocolError
from common.exchanges.replacement import replacement_step
from common.exchanges.sums import sum_step
from common.privacy.noise_law import DiscreteLaplace
from common.privacy.sensitivity import Sensitivity
from common.study.history import History
from common.study.messages import ResultPublished, StepOpened, StudyOpened
from common.study.requests import TableRequest
from common.study.steps import StepContext, step_digest
from curator.role import SendToParty
from party.role import ChargeBudget
from tests.harness.roles import make_roles
from tests.harness.small_study import SIZES, EveryKindOfStep, make_study

LIE = bytes(2)  # two cells of zero


@dataclass
class TwoSums:
    """Two sums of all parties; the second is the same whatever the first came to."""

    study: object
    results: list = field(default_factory=list)
    made: tuple = ()

    def step_without(self, missing):
        return self.step()

    def leave_out(self, missing):
        assert not missing

    def step(self):
        if len(self.results) == 2:
            return None
        return sum_step(
            name=f"tables {len(self.results)}",
            phase="counting",
            parties=self.study.parties,
            request=TableRequest(((0,),), SIZES),
            sensitivity=Sensitivity.moving(2),
            law=DiscreteLaplace(Fraction(4)),
        )

    def advance(self, result):
        self.results.append(result)

    def model(self):
        return self


class Storyteller:
    """Delivers every message; what one party is told may be changed on the way."""

    def __init__(self, study, identities, tables, begin, key=None):
        self.study = study
        self.curator, self.roles = make_roles(study, begin, identities, tables, key=key)

    def run(self, tell=lambda to, message: message):
        waiting = self.curator.start()
        while waiting:
            sent = waiting.pop(0)
            if not isinstance(sent, SendToParty):
                continue
            for effect in self.roles[sent.to].receive(tell(sent.to, sent.message)):
                if not isinstance(effect, ChargeBudget):
                    waiting += self.curator.receive(sent.to, effect.message)

    def lie_to(self, victim, lie, *, key=b""):
        """Another result for one party, and a step that fits the story it was told."""
        story = History(self.study.digest)
        story.add_key(key)
        story.add_result(0, lie)

        def tell(to, message):
            if to != victim:
                return message
            match message:
                case ResultPublished(step=0):
                    return ResultPublished(study=self.study.digest, step=0, result=lie)
                case StepOpened(step=1):
                    digest = step_digest(story.digest, 1, self.roles[victim]._run.step())
                    return StepOpened(
                        study=self.study.digest, step=1, digest=digest, opening=message.opening
                    )
            return message

        return tell


def test_everybody_who_was_told_the_same_finishes(masked_study, identities, tables):
    honest = Storyteller(masked_study, identities, tables, TwoSums)
    honest.run()
    assert len(honest.curator.model().results) == 2


def test_masked_words_of_different_stories_do_not_add_up(masked_study, identities, tables):
    teller = Storyteller(masked_study, identities, tables, TwoSums)
    with pytest.raises(RemoteProtocolError, match="another plan"):
        teller.run(teller.lie_to("east", LIE))
    assert len(teller.curator._run.results) == 1


@pytest.mark.parametrize(
    ("noise", "profile"), [(Noise.DISTRIBUTED, "sound"), (Noise.ONE_SHARE, "paper")]
)
def test_neighbours_in_a_ring_with_different_stories_cannot_read_each_other(
    identities, rows, tables, paillier_key, noise, profile
):
    study = make_study(
        identities, rows, aggregation=Aggregation.PAILLIER, noise=noise, profile=profile
    )
    teller = Storyteller(study, identities, tables, TwoSums, paillier_key)
    key = paillier_key.public_key.to_bytes()
    with pytest.raises(RemoteProtocolError, match="refused"):
        teller.run(teller.lie_to("east", LIE, key=key))
    assert len(teller.curator._run.results) == 1


def test_a_step_that_hides_what_others_were_told_is_refused(masked_study, identities, tables):
    """A party that is told a lie, and then asked as if it had not been, notices at once."""
    teller = Storyteller(masked_study, identities, tables, TwoSums)
    lying = teller.lie_to("east", LIE)

    def tell(to, message):
        return lying(to, message) if isinstance(message, ResultPublished) else message

    with pytest.raises(RemoteProtocolError, match="results published so far"):
        teller.run(tell)


def test_a_party_sees_to_it_that_its_own_choice_is_published(masked_study, identities, tables):
    teller = Storyteller(masked_study, identities, tables, EveryKindOfStep)

    def tell(to, message):
        if to == "south" and isinstance(message, ResultPublished) and message.step == 1:
            return ResultPublished(study=message.study, step=1, result=b"forged")
        return message

    with pytest.raises(RemoteProtocolError, match="not the one 'south' made"):
        teller.run(tell)


def test_the_plan_of_a_sum_holds_for_one_request_and_one_history(masked_study):
    step = TwoSums(masked_study).step()
    other = replace(step, request=TableRequest(((0,),), (2, 4)))
    turn = Coverages().open_turn(
        party="north", rows=40, marginals={(0,): 2}, law=DiscreteLaplace(Fraction(8))
    )
    turn = replacement_step(
        name="r",
        phase="p",
        turn=turn,
        group=turn.groups[0],
        request=TableRequest(((0,),), SIZES),
        turns=("north",),
    )
    plans = [
        asked.exchange.plan(
            StepContext(study=masked_study, number=0, step=asked, history=history), None
        ).digest
        for asked in (step, other, turn)
        for history in (bytes(32), bytes(31) + b"\1")
    ]
    assert len(set(plans)) == len(plans)


def test_a_transcript_tells_every_story_apart():
    stories = []
    for study, key, results in (
        (b"s", b"", []),
        (b"t", b"", []),
        (b"s", b"k", []),
        (b"s", b"", [b"a"]),
        (b"s", b"", [b"b"]),
        (b"s", b"", [b"a", b"b"]),
        (b"s", b"", [b"b", b"a"]),
        (b"s", b"", [b"ab"]),
    ):
        transcript = History(study)
        transcript.add_key(key)
        for number, result in enumerate(results):
            transcript.add_result(number, result)
        stories.append(transcript.digest)
    assert len(set(stories)) == len(stories)


def test_another_key_is_another_story(identities, rows, tables, paillier_key):
    """Before any sum: the key a party was told is in the first step's digest."""
    study = make_study(identities, rows, aggregation=Aggregation.PAILLIER)
    teller = Storyteller(study, identities, tables, TwoSums, paillier_key)
    party = teller.roles["north"]
    party.receive(StudyOpened(study=study.digest, public_key=paillier_key.public_key.to_bytes()))
    told = History(study.digest)
    told.add_key(b"another key")
    with pytest.raises(RemoteProtocolError, match="results published so far"):
        party.receive(
            StepOpened(
                study=study.digest,
                step=0,
                digest=step_digest(told.digest, 0, party._run.step()),
                opening=b"",
            )
        )
