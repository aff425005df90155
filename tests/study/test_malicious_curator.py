"""A curator that follows no protocol at all: what it can make an honest owner's node do.

The curator here is no role. It writes messages of its own, answers what it likes, and is believed
wherever a node has no means to check: in the sums that it publishes.
"""

import itertools
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from common.crypto.identities.identity import LocalParty
from common.crypto.sums.masks import PairwiseMasks
from common.errors import ParleyError, PolicyError, RemoteProtocolError
from common.exchanges.sums import bounds_of
from common.methods.registry import method_of
from common.study.history import History
from common.study.messages import ResultPublished, StepOpened, StudyOpened
from common.study.requests import encode_cells
from common.study.steps import step_digest
from party.role import ChargeBudget
from tests.harness.roles import party_role
from tests.harness.run_script import identities_of, random_tables, study_of

SIZES = (6, 2, 5, 2, 4, 3, 7, 2)
ROWS = (4000, 5000, 6000)  # enough for subn+ to choose what it asks next


class Liar:
    """Runs a study with one honest party, alone, and publishes whatever it likes."""

    def __init__(self, study, tables, name="p0"):
        self.study, self.name = study, name
        begin = method_of(study).run
        self.party = party_role(study, begin, name, identities_of(tables)[name], tables[name])
        self.script, self.history = begin(study), History(study.digest)
        self.charges, self.words, self.steps = [], [], []
        self._tell(StudyOpened(study=study.digest, public_key=b""))
        self.history.add_key(b"")

    def _tell(self, message):
        effects = self.party.receive(message)
        charges = [each for each in effects if isinstance(each, ChargeBudget)]
        answers = [each.message for each in effects if not isinstance(each, ChargeBudget)]
        assert effects[: len(charges)] == charges  # before anything leaves
        self.charges += charges
        return answers

    def run(self, lie):
        """Go through the script; `lie` makes up the cells of each sum within the allowed range."""
        while (step := self.script.step()) is not None:
            number, history = len(self.steps), self.history.digest
            digest = step_digest(history, number, step)
            opened = StepOpened(study=self.study.digest, step=number, digest=digest, opening=b"")
            self.words += self._tell(opened)
            self.steps.append(step)
            total = lie.total(bounds_of(self.study, step))
            result = encode_cells(total)
            self.script.advance(total)
            self._tell(ResultPublished(study=self.study.digest, step=number, result=result))
            self.history.add_result(number, result)
        return self

    @property
    def spent(self):
        return sum((each.epsilon + each.rho for each in self.charges), Fraction(0))


class Anything:
    """Sums of any size, structure or none."""

    def __init__(self, seed):
        self.source = np.random.default_rng(seed)

    def total(self, plan):
        bound = plan.total_bound
        kind = self.source.integers(4)
        if kind == 0:
            return np.zeros(plan.cells, dtype=np.int64)
        if kind == 1:
            return self.source.choice([-bound, bound], plan.cells).astype(np.int64)
        if kind == 2:  # one cell has all rows, as if everything depended on everything
            cells = np.zeros(plan.cells, dtype=np.int64)
            cells[self.source.integers(plan.cells)] = bound
            return cells
        return self.source.integers(-bound, bound + 1, plan.cells).astype(np.int64)


TABLES = random_tables(SIZES, ROWS)


@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1, 10**6)], ids=["pure", "delta"])
@pytest.mark.parametrize("method", ["subn+", "floor"])
def test_whatever_it_publishes_an_owner_pays_no_more_than_the_study_says(method, delta):
    """The budget holds on every path that false sums lead a script along."""
    study = study_of(TABLES, method=method, delta=delta, epsilon=Fraction(3))
    paths = set()
    for seed in range(8):
        liar = Liar(study, TABLES).run(Anything(seed))
        assert 0 < liar.spent <= study.promise.budget
        assert len(liar.charges) == len({each.step for each in liar.charges}) == len(liar.steps)
        for step in liar.steps:
            assert step.costs["p0"] == step.law.cost(step.sensitivity)
        paths.add(tuple(step.canonical for step in liar.steps))
    if method == "subn+":
        assert len(paths) > 1  # the lies did lead somewhere else


def test_a_script_that_false_sums_lead_beyond_the_budget_is_stopped_before_the_answer():
    study = study_of(TABLES, method="subn+")
    liar = Liar(study, TABLES)
    liar.party._spent = study.promise.budget  # as if earlier steps had used it up
    step = liar.script.step()
    digest = step_digest(liar.history.digest, 0, step)
    with pytest.raises(PolicyError, match="more than"):
        liar.party.receive(StepOpened(study=study.digest, step=0, digest=digest, opening=b""))
    assert not liar.charges


def test_a_false_sum_is_answered_as_a_true_one_would_be():
    """Nothing an owner sends shows whether a published sum fits its rows: sizes, kinds, costs."""
    seen = []
    for tables in (TABLES, random_tables(SIZES, ROWS, seed=2)):
        liar = Liar(study_of(tables, method="subn+"), tables).run(Anything(3))
        seen.append(
            [(each.step, each.payload[0], len(each.payload[1])) for each in liar.words]
            + [(each.step, each.epsilon) for each in liar.charges]
        )
    assert seen[0] == seen[1]


@pytest.mark.parametrize("groups", [((0, 1), (2,)), ((0, 2), (1,)), ((0,), (1,), (2,))])
def test_owners_of_different_stories_send_uniform_words(groups):
    """Brute force, modulo 3: every mask of every pair, one value for owners of one story.

    Owners that were told different things derive different keys, so a pair across two stories has
    two masks instead of one. Then nothing is left to learn, not even the total of one story.
    """
    modulus, story = 3, {owner: number for number, group in enumerate(groups) for owner in group}
    pairs = list(itertools.combinations(range(3), 2))
    same = [pair for pair in pairs if story[pair[0]] == story[pair[1]]]
    across = [pair for pair in pairs if story[pair[0]] != story[pair[1]]]
    for values in [(0, 0, 0), (1, 0, 2)]:
        seen = Counter()
        for masks in itertools.product(range(modulus), repeat=len(same) + 2 * len(across)):
            words = list(values)
            for (first, second), mask in zip(same, masks, strict=False):
                words[first] += mask
                words[second] -= mask
            for place, (first, second) in enumerate(across):
                words[first] += masks[len(same) + 2 * place]
                words[second] -= masks[len(same) + 2 * place + 1]
            seen[tuple(word % modulus for word in words)] += 1
        assert len(seen) == modulus**3
        assert len(set(seen.values())) == 1


def test_masks_of_different_stories_do_not_cancel_and_those_of_one_story_do(identities):
    roster = {name: identity.public for name, identity in identities.items()}
    order = tuple(identities)

    def total(digests):
        masks = [
            PairwiseMasks.agree(
                LocalParty(name=name, identity=identities[name], roster=roster),
                plan_digest=digest, order=order, colluders=1,
            ).word_masks(first=0, count=64)
            for name, digest in zip(order, digests, strict=True)
        ]  # fmt: skip
        return np.sum(masks, axis=0, dtype=np.uint64)

    one, other = b"a" * 32, b"b" * 32
    assert not total([one, one, one]).any()
    assert (total([one, one, other]) != 0).all()  # each cell is 0 with probability 2^-64


@pytest.mark.parametrize("wrong", ["digest", "step", "again", "result", "size", "late"])
def test_what_a_node_can_check_it_refuses_without_a_word(wrong):
    study = study_of(TABLES, method="floor")
    liar = Liar(study, TABLES)
    step = liar.script.step()
    digest = step_digest(liar.history.digest, 0, step)
    opened = StepOpened(study=study.digest, step=0, digest=digest, opening=b"")
    plan = bounds_of(study, step)
    far = np.full(plan.cells, plan.total_bound + 1, dtype=np.int64)
    lies = {
        "digest": [StepOpened(study=study.digest, step=0, digest=bytes(32), opening=b"")],
        "step": [StepOpened(study=study.digest, step=1, digest=digest, opening=b"")],
        "again": [opened, StepOpened(study=study.digest, step=0, digest=digest, opening=b"x")],
        "result": [opened, ResultPublished(study=study.digest, step=0, result=encode_cells(far))],
        "size": [opened, ResultPublished(study=study.digest, step=0, result=b"1")],
        "late": [ResultPublished(study=study.digest, step=0, result=b"1")],
    }[wrong]
    for message in lies[:-1]:
        liar._tell(message)
    before = (list(liar.charges), liar.party.state, liar.party.step_number)
    with pytest.raises(ParleyError) as refusal:
        liar._tell(lies[-1])
    assert isinstance(refusal.value, RemoteProtocolError)
    assert (liar.charges, liar.party.state, liar.party.step_number) == before
