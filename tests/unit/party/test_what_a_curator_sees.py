"""What a node does tells nobody whether its rows fit a study's domains.

A study's domains are the proposer's choice. A node that stops at a cell outside of them would tell
anybody who proposes studies the exact range of every column, for nothing.
"""

import contextlib
import datetime as dt
from dataclasses import replace
from fractions import Fraction

import pytest

from common.crypto.identities.identity import Identity
from common.crypto.sums.plan import Aggregation
from common.errors import InputError, LocalError, PolicyError
from common.methods.registry import run_of
from common.privacy.randomness import SeededRandomSource
from common.service.database import Database
from common.study.document import Study
from common.study.history import History
from common.study.members import Member
from common.study.messages import StepOpened, StudyOpened
from common.study.progress import StudyState, StudySummary
from common.study.steps import step_digest
from common.wire import codec
from common.wire.frames import NumberedMessage
from party.client.connection import HungUpError
from party.client.context import PartyContext
from party.client.session import Need, PartySession
from party.client.turn import Turn
from party.collection import Collection
from party.journal import Journal, Notes
from party.ledger import Ledger
from party.owner import decisions
from party.owner.decisions import Approvals
from party.owner.dry_run import dry_run
from party.owner.policy import Policy
from party.sources import SourceSettings
from tests.harness.policies import GivenPolicy
from tests.harness.schemas import schema

NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
NAMES = ("north", "east")
IDENTITIES = {name: Identity.generate(SeededRandomSource(name)) for name in NAMES}
TABLE = "age,ward,since\n93,north,2020-05-01\n40,south,2021-01-31\n41,north,2022-12-24\n"


def study_about(oldest, wards=("north", "south"), last="2025-12-31"):
    about = schema(
        f'name = "age", kind = "integer", min = 0, max = {oldest}, bins = 4',
        f'name = "ward", kind = "categorical", values = {list(wards)}',
        f'name = "since", kind = "date", min = 2000-01-01, max = {last}, bins = 2',
    )
    members = tuple(
        Member(name=name, rows=3, identity=identity.public) for name, identity in IDENTITIES.items()
    )
    return Study(
        name="ages", schema=about, members=members, epsilon=Fraction(1), method="floor",
        aggregation=Aggregation.MASKED,
    )  # fmt: skip


class Watching:
    """A curator that notes every call it gets, opens the first step, and then hangs up."""

    def __init__(self, study):
        self.study = study
        self.seen = []
        self.identity = IDENTITIES["north"].public  # of the curator

    @contextlib.contextmanager
    def dial(self):
        yield self
        self.seen.append("gone")

    def enrol(self, party, identity, **options):
        self.seen.append("enrol")
        return [
            StudySummary(
                study=self.study.digest, name="ages", state=StudyState.WAITING, approved=False,
                submitted=0, acknowledged=0, queued=0,
            )
        ]  # fmt: skip

    def fetch_study(self, study):
        self.seen.append("fetch_study")
        return self.study.to_toml()

    def prove_identity(self, party):
        self.seen.append(f"prove_identity to {party}")
        return self.identity

    def approve(self, study, signature):
        self.seen.append("approve")

    def decline(self, study, reason):
        self.seen.append(f"decline: {reason}")

    def work(self, study, *, received):
        transcript = History(self.study.digest)
        transcript.add_key(b"")
        opened = StepOpened(
            study=self.study.digest, step=0, opening=b"",
            digest=step_digest(transcript.digest, 0, run_of(self.study).step()),
        )  # fmt: skip
        for number, message in enumerate(
            (StudyOpened(study=self.study.digest, public_key=b""), opened), start=1
        ):
            data = codec.TO_PARTY.encode(message)
            yield NumberedMessage(sequence=number, body=data)
        raise HungUpError

    def submit(self, study, messages):
        self.seen += [f"submit {len(each.body)} bytes" for each in messages]
        return messages[-1].sequence

    def acknowledge(self, study, received):
        self.seen.append("acknowledge")


def context_of(folder, database, *, table=TABLE, **changes):
    (folder / "people.csv").write_text(table)
    source = SourceSettings.from_table(
        {"kind": "csv", "path": "people.csv"}, folder=folder, environment={}
    )
    return PartyContext(
        name="north",
        identity=IDENTITIES["north"],
        policies=GivenPolicy(
            Policy(epsilon_per_study=Fraction(1), epsilon_in_total=Fraction(9), **changes)
        ),
        approvals=Approvals(database),
        journal=Journal(database, SeededRandomSource("keys")),
        ledger=Ledger(database),
        notes=Notes(database),
        collection=Collection(database),
        check_source=source.check_readable,
        open_source=lambda study: source.open(study.schema),
        begin=run_of,
        forecast=lambda study, party: dry_run(study, party, begin=run_of),
        clock=lambda: NOW,
    )


def seen_of(folder, study, *, table=TABLE, **changes):
    """Every call that a node makes to a curator that offers this study.

    Args:
        folder: of the party.
        study: what is offered.
        table: the party's rows.
        changes: of the policy.
    """
    folder.mkdir()
    database = Database(folder / "party.db")
    curator = Watching(study)
    session = PartySession(study.digest, context_of(folder, database, table=table, **changes))
    with contextlib.suppress(PolicyError, HungUpError):
        for _ in range(4):  # as often as the node looks
            with contextlib.suppress(InputError), curator.dial() as connection:
                (summary,) = connection.enrol("north", b"")
                if session.needs(summary) in (Need.WORK, Need.REVIEW):
                    session.take_turn(Turn(), connection, summary)
    database.close()
    return curator.seen


OTHERS = {
    "a number beyond the range": study_about(80),
    "a value that is not listed": study_about(99, wards=("north", "west")),
    "a date beyond the range": study_about(99, last="2022-11-30"),
}


@pytest.mark.parametrize("automatic", [True, False])
@pytest.mark.parametrize("study", OTHERS.values(), ids=OTHERS)
def test_rows_that_do_not_fit_a_study_look_like_rows_that_do(tmp_path, study, automatic):
    fitting = seen_of(tmp_path / "fitting", study_about(99), automatic=automatic)
    assert ("approve" in fitting) == automatic
    assert any(call.startswith("submit") for call in fitting) == automatic
    assert seen_of(tmp_path / "other", study, automatic=automatic) == fitting


@pytest.mark.parametrize(
    "changes",
    [
        {"signers": ("A-B",)}, {"methods": ("subn+",)}, {"columns_never": ("Ward",)},
        {"columns_allowed": ("age", "ward")},
    ],
)  # fmt: skip
def test_no_row_is_read_for_a_study_that_the_policy_refuses_at_sight(
    tmp_path, monkeypatch, changes
):
    monkeypatch.setattr(SourceSettings, "open", lambda *_: pytest.fail("the rows were read"))
    seen = seen_of(tmp_path / "party", study_about(99), **changes)
    assert seen == [
        "enrol", "fetch_study", "decline: the owner's policy does not allow this study",
    ]  # fmt: skip


@pytest.mark.parametrize("automatic", [True, False])
def test_a_study_about_a_column_that_we_do_not_have_is_declined_as_by_the_policy(
    tmp_path, automatic
):
    study = study_about(99)
    absent = TABLE.replace("ward", "town")
    seen = seen_of(tmp_path / "party", study, table=absent, automatic=automatic)
    assert seen[-1] == "decline: the owner's policy does not allow this study"
    other = absent.replace("93", "17").replace("south", "north")
    assert seen_of(tmp_path / "other", study, table=other, automatic=automatic) == seen


@pytest.mark.parametrize("automatic", [True, False])
def test_a_table_that_cannot_be_read_at_all_declines_nothing(tmp_path, monkeypatch, automatic):
    def unreadable(*_):
        raise InputError("people.csv: is not there")

    monkeypatch.setattr(SourceSettings, "open", unreadable)
    monkeypatch.setattr(SourceSettings, "check_readable", unreadable)
    seen = seen_of(tmp_path / "party", study_about(99), automatic=automatic)
    assert set(seen) == {"enrol", "fetch_study"}


def test_a_study_that_pins_another_identity_for_us_is_declined_at_sight(tmp_path, monkeypatch):
    monkeypatch.setattr(SourceSettings, "open", lambda *_: pytest.fail("the rows were read"))
    study = study_about(99)
    ours, theirs = study.members
    stranger = Identity.generate(SeededRandomSource("stranger")).public
    other = replace(study, members=(replace(ours, identity=stranger), theirs))
    assert seen_of(tmp_path / "party", other, automatic=True) == [
        "enrol", "fetch_study", "decline: the owner's policy does not allow this study",
    ]  # fmt: skip


def test_a_study_that_pins_another_curator_is_declined_at_sight(tmp_path, monkeypatch):
    monkeypatch.setattr(SourceSettings, "open", lambda *_: pytest.fail("the rows were read"))
    stranger = Identity.generate(SeededRandomSource("stranger")).public
    other = replace(study_about(99), curator=stranger.fingerprint)
    assert seen_of(tmp_path / "party", other, automatic=True) == [
        "enrol", "fetch_study", "prove_identity to north",
        "decline: this curator is not the one that the study pins",
    ]  # fmt: skip


def test_a_study_that_pins_the_curator_that_offers_it_is_approved(tmp_path):
    pinned = replace(study_about(99), curator=IDENTITIES["north"].public.fingerprint)
    assert "approve" in seen_of(tmp_path / "party", pinned, automatic=True)


def test_a_study_whose_plan_is_too_large_is_declined(tmp_path, monkeypatch):
    monkeypatch.setattr("common.exchanges.sums.MOST_STEP_CELLS", 3)
    assert seen_of(tmp_path / "party", study_about(99), automatic=True) == [
        "enrol", "fetch_study", "decline: the owner's policy does not allow this study",
    ]  # fmt: skip


def test_a_study_that_a_dry_run_cannot_finish_is_declined_and_not_tried_again(
    tmp_path, monkeypatch
):
    def outside(law):
        raise LocalError("a noise scale must lie in (0, 2^40]")

    monkeypatch.setattr("common.privacy.noise_law.DiscreteLaplace.__post_init__", outside)
    assert seen_of(tmp_path / "party", study_about(99), automatic=True) == [
        "enrol", "fetch_study", "decline: the owner's policy does not allow this study",
    ]  # fmt: skip


def test_more_rows_of_people_than_the_policy_allows_are_declined_before_a_row_is_read(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(SourceSettings, "open", lambda *_: pytest.fail("the rows were read"))
    study = study_about(99)
    members = tuple(replace(member, rows=3 * 10**9) for member in study.members)
    of_people = replace(study, members=members, rows_per_person=1)
    assert seen_of(tmp_path / "party", of_people) == [
        "enrol", "fetch_study", "decline: the owner's policy does not allow this study",
    ]  # fmt: skip


@pytest.mark.parametrize("per_person", [0, 2])
def test_a_node_charges_the_unit_that_the_study_protects(tmp_path, per_person):
    unit = {"rows_per_person": per_person, "owners_per_person": max(1, per_person)}
    seen = seen_of(tmp_path / "party", replace(study_about(99), **unit), automatic=True)
    assert any(call.startswith("submit") for call in seen)
    with Database(tmp_path / "party" / "party.db") as database:
        (entry,) = Ledger(database).entries()
    assert {key: getattr(entry.charge, key) for key in unit} == unit


def approved_then(folder, table):
    """Approve a study of the usual rows, let it begin with those of another table.

    Returns what the curator sees, and when the owner is told that the rows have changed.
    """
    folder.mkdir()
    study = study_about(99)
    database = Database(folder / "party.db")
    context = context_of(folder, database)
    source = context.open_source(study)
    seen = context.review(study, source)
    decisions.approve(context.approvals, seen, at="then", data_digest=source.snapshot.digest)
    curator = Watching(study)
    session = PartySession(study.digest, context_of(folder, database, table=table))
    with contextlib.suppress(HungUpError), curator.dial() as connection:
        (summary,) = connection.enrol("north", b"")
        session.take_turn(Turn(), connection, summary)
    told = context.approvals.rows_changed_at(study.digest)
    database.close()
    return curator.seen, told


def test_rows_that_changed_since_the_approval_are_told_to_the_owner_alone(tmp_path):
    same, nothing = approved_then(tmp_path / "same", TABLE)
    assert nothing == ""
    assert any(call.startswith("submit") for call in same)
    header, first, *rest = TABLE.splitlines()
    reordered = "\n".join([header, *rest, first, ""])
    assert approved_then(tmp_path / "reordered", reordered) == (same, "")
    changed, told = approved_then(tmp_path / "changed", TABLE.replace("93", "17"))
    assert told == NOW.isoformat(timespec="seconds")
    assert changed == same, "the curator sees no difference"
    assert "parley party withdraw" in decisions.rows_in_words(told)


def test_the_owner_is_told_of_them_in_a_review(tmp_path):
    database = Database(tmp_path / "party.db")
    context = context_of(tmp_path, database)
    with pytest.raises(InputError, match=r"1 cell is outside the domain 0\.\.80 .*: row 2: 93"):
        context.open_source(study_about(80))
    database.close()


@pytest.mark.parametrize("automatic", [True, False])
def test_a_study_that_expired_is_left_alone_and_no_row_is_read(tmp_path, monkeypatch, automatic):
    today = replace(study_about(99), expires=NOW.date())
    assert "decline" not in "".join(seen_of(tmp_path / "on", today, automatic=automatic))
    monkeypatch.setattr(SourceSettings, "open", lambda *_: pytest.fail("the rows were read"))
    study = replace(today, expires=NOW.date() - dt.timedelta(days=1))
    # A clock that is wrong here ends no study for the other owners: it is the curator's to end.
    assert seen_of(tmp_path / "after", study, automatic=automatic) == ["enrol", "fetch_study"]
