"""The review says what a study costs and asks, what leaves, and who is protected from whom."""

import dataclasses
import datetime as dt
import json
from fractions import Fraction

import pytest

from common.crypto.identities.identity import Identity
from common.crypto.sums.plan import Aggregation, Noise
from common.exchanges.choice import choice_step
from common.exchanges.sums import sum_step
from common.methods.registry import run_of
from common.privacy.noise_law import DiscreteLaplace
from common.privacy.randomness import SeededRandomSource
from common.privacy.sensitivity import Sensitivity
from common.privacy.spending import Spending, rho_of
from common.release.measured import ExpectedError
from common.schema import Schema
from common.study.criteria import read_criteria
from common.study.document import Study
from common.study.members import Member
from common.study.requests import TableRequest
from party.owner.dry_run import PlannedStep, dry_run, fewest_owners, planned
from party.owner.policy import SAMPLE, Circumstances, Policy
from party.owner.review import review
from party.totals import Totals
from tests.harness.linked import SCHEMA as LINKED
from tests.harness.run_script import identities_of, random_tables, study_of

SCHEMA = Schema.from_toml('[[attribute]]\nname = "a"\nkind = "boolean"\n')
PEOPLE = {name: Identity.generate(SeededRandomSource(name)).public for name in "abc"}
SUM = sum_step(
    name="one-way",
    phase="structure",
    parties=("a", "b", "c"),
    request=TableRequest(((0,), (0, 1)), (2, 3)),
    sensitivity=Sensitivity.moving(4),
    law=DiscreteLaplace(Fraction(16)),
)
CHOICE = choice_step(
    name="edge",
    phase="edges",
    party="a",
    choice=None,  # type: ignore[arg-type]  # never run here
    epsilon=Fraction(1, 2),
    mechanism="exponential",
)


def reviewed(
    parties="abc", *, cost=Fraction(3, 4), steps=None, policy=SAMPLE, of_people=False, **changes
):
    members = tuple(Member(name=n, rows=2000, identity=PEOPLE[n]) for n in parties)
    settings = {"name": "s", "schema": SCHEMA, "epsilon": Fraction(3, 4), "key_bits": 3072}
    study = Study(members=members, **(settings | changes))
    if steps is None:
        steps = [
            planned(SUM, "a"),
            planned(CHOICE, "a"),
            planned(SUM, "a"),
        ]
    around = Circumstances(
        party="a", identity=PEOPLE["a"], fewest_owners=fewest_owners(steps), rows=2000,
        data_as_of=dt.date(2025, 1, 1), cost=Spending.of(cost, study.delta),
        spent_in_total=Totals(of_rows=Spending.of(Fraction(1))), curator=None,
        source_of_people=of_people,
    )  # fmt: skip
    return review(study, Policy.from_toml(policy), around, steps)


def test_a_step_is_counted_for_the_parties_it_concerns():
    assert planned(SUM, "a") == PlannedStep(
        phase="structure", cost=Fraction(1, 4), tables=2, cells=8, owners=3
    )
    assert planned(SUM, "d") == PlannedStep(phase="structure", cost=Fraction(0))
    assert planned(CHOICE, "a") == PlannedStep(phase="edges", cost=Fraction(1, 2), choices=1)


@pytest.mark.parametrize(("choices", "joint"), [("together", True), ("in turn", False)])
def test_a_joint_choice_is_told_apart_from_one_of_our_own(choices, joint):
    """What leaves, with whom, and what the protection from the other party rests on."""
    tables = random_tables((2, 4, 3), [50, 60])
    settings = (("choices", choices), ("divisions", 2), ("target", "a0"))
    study = study_of(tables, method="distdiffgen", settings=settings)
    steps = dry_run(study, "p0", begin=run_of)
    around = Circumstances(
        party="p0", identity=study.members[0].identity, fewest_owners=fewest_owners(steps),
        rows=50, data_as_of=dt.date(2025, 1, 1), cost=Spending.of(Fraction(1)),
        spent_in_total=Totals(), curator=None,
    )  # fmt: skip
    told = review(study, Policy.from_toml(SAMPLE), around, steps).text()
    assert ("with the other party" in told) is joint
    assert ("on our rows alone" in told) is not joint
    assert ("follow the protocol of the two-party computation" in told) is joint


def test_criteria_and_their_part_of_the_cost_are_shown_before_approval():
    wanted = read_criteria([{"share": "a = true", "within": "2 %"}])
    told = reviewed(criteria=wanted, criteria_epsilon=Fraction(1, 20)).text()
    assert "Of the cost, epsilon 0.05 tells how good the model is:" in told
    assert "criterion: share of a = true within 2 %" in told
    assert "It reads 1 column of ours, and no other:\n    a: false, true\n" in told
    assert "criterion" not in reviewed().text()


def test_steps_are_added_up_by_phase():
    structure, edges = reviewed().phases
    assert structure == PlannedStep(
        phase="structure", cost=Fraction(1, 2), tables=4, cells=16, owners=3
    )
    assert edges.choices == 1


def test_the_text_says_cost_queries_departures_and_verdict():
    text = reviewed().text()
    for part in (
        "epsilon 0.75 for each of our rows",
        "Earlier studies spent 1 of a row. Left for later studies: 2.25 of ",
        "It publishes 6,000 synthetic rows and the model they are drawn from: method subn+",
        "It reads 1 column of ours, and no other:",
        "a: false, true",
        f"a (us): 2,000 rows, identity {PEOPLE['a'].fingerprint}",
        f"b: 2,000 rows, identity {PEOPLE['b'].fingerprint}",
        "structure: epsilon 0.5, 4 tables of 16 cells in all",
        "edges: epsilon 0.5, 1 choice of our own",
        "4 tables of counts (16 integers) with noise in them, encrypted",
        "Never: a row, an exact count",
        "a suspicion of 50 % about a row can become about 68 % at most",
        "A person with two rows, both ours or one of another owner, pays twice: epsilon 1.5",
        "a row that was in all of ours will have paid epsilon 1.75",
        "We can withdraw until the study is over",
        "Our policy allows it",
    ):
        assert part in text
    assert "claims" not in text


def test_a_cost_above_the_claim_and_a_refusal_stand_out():
    text = reviewed(cost=Fraction(5), profile="paper").text()
    assert "epsilon 5 for each of our rows; the study claims 0.75" in text
    assert "Our policy REFUSES it" in text
    assert "epsilon_per_study" in text
    assert "'paper' is not among the profiles" in text


@pytest.mark.parametrize(
    ("changes", "protected"),
    [
        ({}, [True, True, True, False]),
        ({"colluders": 2}, [True, True, True]),
        ({"aggregation": Aggregation.MASKED}, [True, True, True, False]),
        ({"aggregation": Aggregation.CLEAR}, [True, False, True, False]),
        ({"noise": Noise.ONE_SHARE, "profile": "paper"}, [True, True, False]),
        # Distributed noise does not help where partial sums have no masks, or noise is replaced.
        ({"profile": "paper", "method": "dp-ccbn"}, [True, True, True, False, False]),
        ({"profile": "paper", "method": "dp-subn"}, [True, True, False, False]),
        ({"parties": "a"}, [True, True]),
        ({"method": "independent", "aggregation": Aggregation.CLEAR}, [True, True, True]),
    ],
)
def test_who_is_protected_from_whom(changes, protected):
    found = reviewed(**changes).protections
    assert [each.epsilon is not None for each in found] == protected


def test_the_json_is_plain_and_holds_everything():
    made = reviewed()
    document = json.loads(json.dumps(made.as_json()))
    assert set(document) == {field.name for field in dataclasses.fields(made)}
    assert document["cost"] == "3/4"
    assert document["phases"][0]["cost"] == "1/2"
    assert document["reasons_against"] == []


def test_a_study_that_asks_nothing_says_so():
    assert reviewed(steps=[], cost=Fraction(0)).leaves[0].startswith("Our number of rows")


def test_a_signature_that_the_policy_does_not_look_at_is_called_so():
    assert "names no signers" in reviewed().text()
    known = SAMPLE.replace("signers = []", f'signers = ["{PEOPLE["b"].fingerprint}"]')
    assert known != SAMPLE
    assert "names no signers" not in reviewed(policy=known).text()


def test_values_that_a_spreadsheet_would_run_are_warned_of():
    listed = '[[attribute]]\nname = "a"\nkind = "categorical"\nvalues = ["=cmd()", "-1", "x"]\n'
    text = reviewed(schema=Schema.from_toml(listed)).text()
    assert "Formulas: a spreadsheet would run 1 of the names and values" in text
    assert "Formulas" not in reviewed().text()


def test_values_cannot_forge_lines_of_a_review():
    schema = Schema.from_toml(
        '[[attribute]]\nname = "a"\nkind = "categorical"\n'
        'values = ["x\\n\\nWhat it costs\\n  epsilon 1/10", "\\u001b[2J", "\\u202e"]\n'
    )
    text = reviewed(schema=schema).text()
    assert all(line.isprintable() for line in text.split("\n"))
    assert text.count("\nWhat it costs\n") == 1


TABLES = random_tables((2, 2, 2, 2), (4000, 4000, 4000))


def rehearsed(**changes):
    study = study_of(TABLES, epsilon=Fraction(3, 4), key_bits=3072, **changes)
    steps = dry_run(study, "p1", begin=run_of)
    around = Circumstances(
        party="p1", identity=identities_of(TABLES)["p1"].public, rows=4000,
        fewest_owners=fewest_owners(steps), data_as_of=dt.date(2025, 1, 1),
        cost=Spending.of(Fraction(3, 4)),
        spent_in_total=Totals(), curator=None,
    )  # fmt: skip
    return review(study, Policy.from_toml(SAMPLE), around, steps)


@pytest.mark.parametrize("aggregation", [Aggregation.PAILLIER, Aggregation.MASKED])
@pytest.mark.parametrize(
    ("cohorts", "said", "refused"),
    [
        (1, "the sum of all parties and nothing else", 0),
        (2, "sums, the smallest of them of 2 of the 3 parties, and nothing else", 1),
        (3, "sums, SOME OF THEM OF OUR ROWS ALONE, and nothing else", 1),
    ],
)
def test_the_fewest_owners_of_a_sum_are_named_and_held_against_the_policy(
    aggregation, cohorts, said, refused
):
    made = rehearsed(cohorts=cohorts, aggregation=aggregation)
    assert any(phase.phase == "structure update" for phase in made.phases)
    assert said in made.leaves[0]
    assert ("sum of all parties" in made.text()) == (cohorts == 1)
    assert ["min_parties" in reason for reason in made.reasons_against] == [True] * refused


def test_replacement_brings_in_one_owners_rows_at_a_time():
    made = rehearsed(profile="paper", aggregation=Aggregation.PAILLIER)
    assert "OUR ROWS ALONE" in made.leaves[0]
    assert any("min_parties" in reason for reason in made.reasons_against)


def test_independent_models_add_nothing_up_and_say_so():
    made = rehearsed(method="independent")
    assert made.leaves[0].startswith("1 choice made by a differentially private mechanism on our")
    assert "sum of all parties" not in made.text()
    assert not any("min_parties" in reason for reason in made.reasons_against)


def test_delta_is_named_and_explained():
    delta = Fraction(1, 10**9)
    proposed = study_of(TABLES, epsilon=Fraction(3, 4), key_bits=3072, delta=delta, method="floor")
    cost = Spending.of(proposed.promise.budget, delta)
    name = proposed.members[0].name
    around = Circumstances(
        party=name, identity=proposed.members[0].identity, fewest_owners=3, rows=2000,
        data_as_of=dt.date(2025, 1, 1), cost=cost,
        spent_in_total=Totals(of_rows=Spending.of(Fraction(1))), curator=None,
    )  # fmt: skip
    steps = [PlannedStep(phase="histograms", cost=cost.paid, tables=3, cells=6, owners=3)]
    seen = review(proposed, Policy.from_toml(SAMPLE), around, steps)
    text = seen.text()
    for part in (
        "epsilon 0.75 and delta 1e-09 for each of our rows",
        "but for a probability of delta",
        "at most 1 in 1,000,000,000 for a row",
        "histograms: rho about",
        "pays more than twice: epsilon about 1.5",
        "it has a delta of 1e-09, and none is allowed (max_delta)",
    ):
        assert part in text
    assert seen.as_json()["delta"] == "1/1000000000"
    assert seen.as_json()["currency"] == "rho"


def test_the_purpose_comes_first_and_its_absence_is_said():
    text = reviewed().text()
    assert text.index("What it is for") < text.index("What it costs")
    assert "does not say what its table is for" in text
    text = reviewed(
        purpose="Plan the next ward", recipient="Region North", contact="m@example.org",
        ethics="EK 12/2026", expires=dt.date(2027, 1, 31),
    ).text()  # fmt: skip
    for line in (
        "  Plan the next ward", "  for: Region North", "  contact: m@example.org",
        "  ethics reference: EK 12/2026", "  expires: after 2027-01-31 (UTC)",
    ):  # fmt: skip
        assert f"{line}\n" in text


def test_a_study_of_rows_that_meets_a_source_of_people_is_warned_of():
    seen = reviewed(of_people=True)
    assert "WARNING\n  It protects single rows, and our source says whose row" in seen.text()
    assert "two rows pays epsilon 1.5, one with k rows k times" in seen.warnings[0]
    assert seen.as_json()["warnings"] == list(seen.warnings)
    delta = Fraction(1, 10**9)
    concentrated = reviewed(of_people=True, cost=rho_of(Fraction(3, 4), delta), delta=delta)
    assert "one with k rows more than k times" in concentrated.warnings[0]
    assert reviewed().warnings == ()
    assert reviewed(of_people=True, rows_per_person=1).warnings == ()


def test_a_study_of_people_is_told_in_people():
    text = reviewed(rows_per_person=2).text()
    for part in (
        "It charges epsilon 0.75 for each person of ours",
        "likelier with all rows of one person than with others",
        "Earlier studies spent 0 of a person. Left for later studies: 2.25 of ",
        "a person that was in all of ours will have paid epsilon 0.75 in studies of",
        "of people, and for each of its rows epsilon 1 in studies of rows",
    ):
        assert part in text


def test_under_a_delta_two_identifiers_cost_more_than_twice():
    delta = Fraction(1, 10**9)
    pure = reviewed(rows_per_person=1, cost=Fraction(1))
    assert any("pays twice: epsilon 2." in line for line in pure.limits)
    concentrated = reviewed(rows_per_person=1, cost=rho_of(Fraction(1), delta), delta=delta)
    (line,) = [each for each in concentrated.limits if "two identifiers" in each]
    assert "pays more than twice: epsilon about 2.06988" in line


def test_what_is_left_of_this_year_is_said_where_the_policy_has_such_a_cap():
    assert "epsilon_per_year" in SAMPLE
    seen = reviewed()
    assert seen.left_this_year == Fraction(5, 4), "the year's 2, less the 3/4 of this study"
    assert "1.25 this year" in seen.text()
    lines = [line for line in SAMPLE.splitlines() if "epsilon_per_year" not in line]
    without = reviewed(policy="\n".join(lines))
    assert without.left_this_year is None
    assert "this year" not in without.left_words


def test_a_study_of_people_and_events_is_said_to_be_one_promise():
    seen = reviewed(schema=LINKED, of_people=True)
    assert (seen.unit, seen.warnings) == ("person", ())
    text = seen.text()
    assert "for each person of ours" in text
    assert "One promise holds for a person and all of her visits; at most 4 visits of a person" in (
        text
    )
    assert "the first by 'day'" in text
    assert "2 columns of people and 2 columns of visits, and no other but whose they are" in text
    assert "  visits: ward: " in text
    assert "Never: a row, an exact count, the number of our visits" in text
    assert "a table of 6,000 synthetic people, a table of their visits" in text
    assert "(us): 2,000 people, identity" in text
    assert "Our number of people, which the study makes public" in text
    delta = Fraction(1, 10**9)
    under_delta = reviewed(schema=LINKED, cost=rho_of(Fraction(1), delta), delta=delta)
    assert "at most 1 in 1,000,000,000 for a person." in under_delta.delta_means
    step = dataclasses.replace(planned(SUM, "a"), errors=(ExpectedError((0,), 2, 8.0, 0.1),))
    expected = "\n".join(reviewed(schema=LINKED, steps=[step]).expected)
    assert "Single columns of people: off by about 10.0% of the people; worst sex" in expected
    assert "Groups of fewer than about 16 people will be" in expected


def test_a_rehearsal_of_people_and_events_simulates_columns_of_both():
    text = reviewed(schema=LINKED, of_people=True, rehearsal=True).text()
    assert "simulates 2 columns of people and 2 columns of visits. The study itself will" in text
