import json
from dataclasses import replace
from fractions import Fraction

import pytest

from common.errors import LocalError
from common.privacy.accountant import Accountant, Charge, laplace_charge
from common.privacy.promise import Promise
from common.privacy.statement import PrivacyStatement, Protection, shortcomings, suspicion

PUBLIC = Protection(
    against="anyone who sees the release", epsilon=Fraction(3, 10), assumes="nothing"
)


def statement(not_private_because=(), **changes) -> PrivacyStatement:
    accountant = Accountant({"north": None, "south": None})
    accountant.charge(
        Charge(
            step="structure",
            mechanism="exponential mechanism",
            costs={"north": Fraction(1, 10)},
            sensitivities={"north": Fraction(3)},
        )
    )
    made = laplace_charge(
        "marginals", scale=Fraction(100), sensitivities={"north": 20, "south": 30}
    )
    accountant.charge(replace(made, claimed=dict.fromkeys(("north", "south"), Fraction(1, 10))))
    settings = {
        "promise": Promise(Fraction(3, 10)),
        "accountant": accountant,
        "protections": [PUBLIC],
        "not_private_because": not_private_because,
        **changes,
    }
    return PrivacyStatement(**settings)


def test_scripts_find_their_keys():
    content = json.loads(json.dumps(statement().as_dict()))
    assert content["epsilon_requested"] == 0.3
    assert content["epsilon_delivered"] == 0.3
    assert content["parties"] == {"north": 0.3, "south": 0.3}
    assert content["exact"]["parties"]["north"] == "3/10"
    assert [step["step"] for step in content["steps"]] == ["structure", "marginals"]
    assert content["steps"][1]["scale"] == 100
    assert content["steps"][0]["parties"] == {"north": 0.1}
    assert content["private"] is True
    assert set(content) == {
        "format",
        "version",
        "private",
        "not_private_because",
        "epsilon_requested",
        "epsilon_delivered",
        "epsilon_realised",
        "epsilon_claimed_by_paper",
        "delta",
        "delta_delivered",
        "rho",
        "epsilon_by_delta",
        "currency",
        "what_delta_means",
        "parties",
        "realised",
        "may_miss",
        "missing",
        "exact",
        "steps",
        "unit_of_privacy",
        "neighbours",
        "adversaries",
        "not_promised",
        "mechanisms",
        "sampler",
        "notes",
        "criteria",
        "prior",
        "versions",
    }


def test_what_was_delivered_is_the_largest_payment_not_what_was_asked_for():
    content = statement(promise=Promise(Fraction(1, 10))).as_dict()
    assert content["epsilon_requested"] == 0.1
    assert content["epsilon_delivered"] == 0.3


def test_the_claim_of_the_paper_stands_beside_the_truth():
    assert statement().as_dict()["epsilon_claimed_by_paper"] == 0.2


def test_a_seeded_source_or_clear_sums_make_a_run_not_private():
    assert shortcomings(source_private=True) == ()
    assert len(shortcomings(source_private=False)) == 1
    assert len(shortcomings(source_private=False, clear_aggregation=True)) == 2
    assert len(shortcomings(source_private=True, clear_aggregation=True)) == 1


def test_a_run_that_is_not_private_says_so():
    made = statement(shortcomings(source_private=False))
    assert made.as_dict()["private"] is False
    assert statement().as_dict()["private"] is True


def test_an_adversary_who_is_not_held_off_is_named_as_such():
    curator = Protection(against="the curator", epsilon=None, assumes="it sees exact sums")
    made = statement(protections=[PUBLIC, curator])
    assert made.as_dict()["adversaries"][1]["epsilon"] is None


def test_a_statement_without_an_adversary_is_refused():
    with pytest.raises(LocalError, match="adversary"):
        statement(protections=[])


def test_notes_and_versions_are_there():
    made = statement(notes=["Ten rows were rejected."])
    assert made.as_dict()["notes"] == ["Ten rows were rejected."]
    assert {"python", "numpy", "gmpy2"} <= set(made.as_dict()["versions"])


def test_what_is_not_promised_is_said_with_the_epsilon_of_a_person_with_two_rows():
    made = statement()
    several, adding, _, public = made.as_dict()["not_promised"]
    assert "with two rows, of one owner or of two, the epsilon is 0.6 instead of 0.3" in several
    assert "the sum" in adding
    assert "number of rows" in public


@pytest.mark.parametrize(
    ("epsilon", "said"),
    [(0.5, "about 62 % at most"), (1, "about 73 % at most"), (9, "all but certain")],
)
def test_an_epsilon_in_words(epsilon, said):
    assert suspicion(epsilon) == f"a suspicion of 50 % about a row can become {said}"
    of_people = suspicion(epsilon, about="person")
    assert of_people == f"a suspicion of 50 % about a person can become {said}"
