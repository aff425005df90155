"""The policy refuses everything outside of it, with every reason at once."""

import dataclasses
import datetime as dt
from fractions import Fraction

import pytest

from common.crypto.identities.identity import Identity
from common.crypto.sums.plan import Aggregation
from common.errors import InputError, PolicyError
from common.privacy.randomness import SeededRandomSource
from common.privacy.spending import Spending, rho_of
from common.schema import Schema
from common.study.analyses import read_analyses
from common.study.document import Study
from common.study.members import Member
from party.owner.policy import SAMPLE, Circumstances, Policy
from party.totals import Totals
from tests.harness.linked import SCHEMA as LINKED

SCHEMA = Schema.from_toml('[[attribute]]\nname = "a"\nkind = "boolean"\n')
IDENTITIES = {name: Identity.generate(SeededRandomSource(name)) for name in "abc"}
PEOPLE = {name: identity.public for name, identity in IDENTITIES.items()}
POLICY = Policy.from_toml(SAMPLE)
DELTA = Fraction(1, 10**9)
FINGERPRINT = PEOPLE["a"].fingerprint


def rows_paid(cost, delta=Fraction(0)):
    """What studies of rows cost."""
    return Totals(of_rows=Spending.of(cost, delta))


def study(parties="abc", *, signed_by=None, **changes):
    members = tuple(Member(name=n, rows=2000, identity=PEOPLE[n]) for n in parties)
    settings = {"name": "s", "schema": SCHEMA, "epsilon": Fraction(1), "key_bits": 3072, **changes}
    made = Study(members=members, **settings)
    return made if signed_by is None else made.signed_by(IDENTITIES[signed_by])


def circumstances(**changes):
    return dataclasses.replace(
        Circumstances(
            party="a",
            identity=PEOPLE["a"],
            fewest_owners=3,
            rows=2000,
            data_as_of=dt.date(2025, 6, 1),
            cost=Spending.of(Fraction(1)),
            spent_in_total=Totals(),
            curator=None,
        ),
        **changes,
    )


def check(policy, study, circumstances):
    reasons = policy.reasons_against(study, circumstances)
    if reasons:
        raise PolicyError("\n".join(f"- {reason}" for reason in reasons))


def test_the_sample_allows_an_ordinary_study():
    check(POLICY, study(), circumstances())
    assert POLICY.caps.per_study == 1
    assert POLICY.caps.in_total == 4


@pytest.mark.parametrize(
    ("policy", "proposed", "around", "named"),
    [
        ({}, {}, {"cost": Spending.of(Fraction(11, 10))}, "epsilon_per_study"),
        ({}, {}, {"spent_in_total": rows_paid(Fraction(31, 10))}, "epsilon_in_total"),
        ({}, {"delta": DELTA}, {}, "delta of 1e-09, and none is allowed.*max_delta"),
        ({"max_delta": DELTA / 10}, {"delta": DELTA}, {}, "at most 1e-10 is allowed"),
        ({}, {}, {"spent_in_total": rows_paid(Fraction(1, 10**6), DELTA)}, "max_delta"),
        ({}, {"parties": "ab"}, {}, "min_parties"),
        ({}, {"colluders": 0}, {}, "withstands 0 of the other parties.*min_colluders"),
        ({"min_colluders": 2}, {}, {}, "min_colluders"),
        ({}, {"key_bits": 2048}, {}, "min_key_bits"),
        ({}, {"seeded": True}, {}, "come from a seed, so it is not private"),
        ({}, {"method": "floor"}, {}, "'floor' is not among the methods"),
        ({}, {"profile": "paper"}, {}, "'paper' is not among the profiles"),
        ({}, {"aggregation": Aggregation.CLEAR}, {}, "'clear' is not among the aggregations"),
        ({"signers": (FINGERPRINT,)}, {}, {}, "unknown.*signers"),
        ({"signers": (FINGERPRINT,)}, {"signed_by": "b"}, {}, "signers"),
        ({"curators": (FINGERPRINT,)}, {}, {"curator": "AB:CD"}, "AB:CD.*curators"),
        ({}, {}, {"fewest_owners": 1}, "with those of 0 other parties in a sum.*min_parties"),
        ({"min_parties": 2}, {}, {"fewest_owners": 1}, "at least 2 parties are needed in each"),
        ({}, {}, {"party": "z"}, "no party called 'z'"),
        ({}, {}, {"identity": PEOPLE["b"]}, "pins another identity for 'a'"),
        ({}, {}, {"rows": 2001}, "says that we have 2,000 rows, and we have 2,001"),
        ({"min_rows": 3000}, {}, {}, "min_rows"),
        ({"max_rows": 1999}, {}, {}, "max_rows"),
        ({"protects": "people"}, {}, {}, "protects single rows.*protects"),
        ({"protects": None}, {}, {}, "protects single rows.*protects"),
        (
            {"rows_per_person": 2},
            {"rows_per_person": 1},
            {},
            "at most 1 row of a person.*at least 2",
        ),
        ({"owners_per_person": 3}, {"rows_per_person": 1}, {}, "at 1 owner, at least 3"),
        ({}, {}, {"data_as_of": None}, "date of our data is not known"),
        ({}, {}, {"data_as_of": dt.date(2023, 12, 31)}, "not_before"),
        ({}, {}, {"data_as_of": dt.date(2031, 1, 1)}, "not_after"),
    ],
)
def test_each_limit_refuses_by_name_and_alone(policy, proposed, around, named):
    changed = dataclasses.replace(POLICY, **policy)
    with pytest.raises(PolicyError, match=named):
        check(changed, study(**proposed), circumstances(**around))
    assert len(changed.reasons_against(study(**proposed), circumstances(**around))) == 1


@pytest.mark.parametrize(
    "around",
    [
        {"data_as_of": dt.date(2024, 1, 1)},
        {"data_as_of": dt.date(2030, 12, 31)},
        {"spent_in_total": rows_paid(Fraction(3))},
        {"fewest_owners": None},
    ],
)
def test_what_is_exactly_on_a_limit_is_allowed(around):
    check(POLICY, study(), circumstances(**around))


def test_a_policy_without_names_allows_any_signer_and_any_curator():
    check(POLICY, study(signed_by="a"), circumstances(curator="anybody"))


def test_a_study_that_is_not_for_us_is_refused_at_sight():
    def reasons(party, identity):
        return POLICY.reasons_at_sight(study(), party=party, identity=identity, curator=None)

    assert reasons("a", PEOPLE["a"]) == []
    assert len(reasons("z", PEOPLE["a"])) == 1
    (other,) = reasons("a", PEOPLE["b"])
    assert PEOPLE["a"].fingerprint in other
    assert PEOPLE["b"].fingerprint in other


def at_sight(policy, proposed):
    return policy.reasons_at_sight(proposed, party="a", identity=PEOPLE["a"], curator=None)


def stating(rows, **changes):
    """A study that states so many rows of ours."""
    members = [Member(name=n, rows=rows if n == "a" else 2000, identity=PEOPLE[n]) for n in "abc"]
    return dataclasses.replace(study(**changes), members=tuple(members))


def test_stated_rows_are_compared_before_any_row_is_read():
    """A node opens its rows before its owner has approved, and fills them up to what is stated."""
    (reason,) = at_sight(POLICY, stating(3 * 10**9, rows_per_person=1))
    assert reason == (
        "it says that we have 3,000,000,000 rows, at most 5,000,000 may take part (max_rows)"
    )
    (reason,) = at_sight(POLICY, stating(999))
    assert "min_rows" in reason
    assert at_sight(POLICY, stating(5_000_000, rows_per_person=1)) == []


def test_rows_of_people_have_a_limit_where_the_policy_names_none():
    open_policy = dataclasses.replace(POLICY, max_rows=None)
    assert at_sight(open_policy, stating(10_000_000, rows_per_person=1)) == []
    (reason,) = at_sight(open_policy, stating(10_000_001, rows_per_person=1))
    assert "at most 10,000,000 may take part (max_rows)" in reason
    assert at_sight(open_policy, stating(10_000_001)) == [], "our rows must be as many"


@pytest.mark.parametrize(
    ("keys", "rows", "people"),
    [
        ({}, True, True),
        ({"protects": "rows"}, True, True),
        ({"protects": "people"}, False, True),
        ({"rows_per_person": 1}, False, True),
        ({"rows_per_person": 3}, False, False),
        ({"owners_per_person": 2}, False, True),
        ({"owners_per_person": 3}, False, False),
        ({"protects": "rows", "owners_per_person": 3}, True, False),
    ],
)
def test_the_owner_demands_the_unit_of_privacy(keys, rows, people):
    stated = dict.fromkeys(("protects", "rows_per_person", "owners_per_person")) | keys
    policy = dataclasses.replace(POLICY, **stated)
    assert (at_sight(policy, study()) == []) == rows
    of_people = study(rows_per_person=2, owners_per_person=2)
    assert (at_sight(policy, of_people) == []) == people


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"protects": "people"}, ""),
        ({"rows_per_person": 9}, ""),  # all of a person's events are protected
        ({"owners_per_person": 2}, "owners_per_person"),
        ({"columns_never": ("Ward",)}, "column 'ward'"),
        ({"columns_allowed": ("age", "sex", "diagnosis")}, "column 'ward'"),
    ],
)
def test_a_study_of_people_and_events_protects_people_and_names_the_columns_of_both(keys, words):
    policy = dataclasses.replace(POLICY, **({"protects": None, "columns_never": ()} | keys))
    reasons = at_sight(policy, study(schema=LINKED))
    assert [words in each for each in reasons] == ([True] if words else [])


ASKED = Schema.from_toml(
    """
attribute = [
  { name = "wage", kind = "integer", min = 0, max = 9 },
  { name = "days", kind = "integer", min = 0, max = 9 },
  { name = "ill", kind = "boolean" },
]
"""
)


@pytest.mark.parametrize(
    "analysis",
    [
        'relation = ["wage", "days"]',
        'mean = "days", by = ["wage"]',
        'share = "wage >= 5 and ill = true"',
        'regression = "days ~ wage + ill"',
        'survival = ["days", "ill"], by = "wage"',
        'relation = ["days", "ill"]',  # the table has the column, whatever the analyses need
    ],
)
def test_no_analysis_reaches_a_column_that_no_study_may_name(analysis):
    asked = study(schema=ASKED, analyses=read_analyses(analysis, ASKED))
    policy = dataclasses.replace(POLICY, protects="rows", columns_never=())
    assert at_sight(policy, asked) == []
    for keys in ({"columns_never": ("Wage",)}, {"columns_allowed": ("days", "ill")}):
        (reason,) = at_sight(dataclasses.replace(policy, **keys), asked)
        assert "column 'wage'" in reason
    without = Schema(ASKED.attributes[1:])
    if "wage" in analysis:  # and no analysis is about a column that its study leaves out
        with pytest.raises(InputError, match="wage"):
            read_analyses(analysis, without)
    else:
        allowed = dataclasses.replace(policy, columns_never=("wage",))
        asked = study(schema=without, analyses=read_analyses(analysis, without))
        assert at_sight(allowed, asked) == []


def test_more_owners_than_there_are_are_not_demanded():
    policy = dataclasses.replace(POLICY, owners_per_person=9)
    assert at_sight(policy, study(rows_per_person=1, owners_per_person=3)) == []


AUTOMATIC = (
    '[budget]\nepsilon_per_study = "1"\nepsilon_in_total = "4"\n[approval]\nautomatic = true\n'
    '[study]\nsigners = ["AB"]\n'
)


def test_an_automatic_node_with_a_source_of_people_must_say_whom_studies_protect():
    policy = Policy.from_toml(AUTOMATIC)
    policy.check_unit(source_of_people=False)
    with pytest.raises(InputError, match=r'approval\.automatic: .* protects = "people", or'):
        policy.check_unit(source_of_people=True)
    for key in ('protects = "rows"', 'protects = "people"', "rows_per_person = 1"):
        Policy.from_toml(f"{AUTOMATIC}{key}\n").check_unit(source_of_people=True)
    dataclasses.replace(policy, automatic=False).check_unit(source_of_people=True)


def test_a_cap_of_the_policy_holds_for_each_unit():
    spent = Totals.of(Spending.of(Fraction(7, 2)), rows_per_person=1, owners_per_person=1)
    around = circumstances(spent_in_total=spent)
    (reason,) = POLICY.reasons_against(study(), around)
    assert reason.startswith("it costs a row epsilon 1, epsilon 7 is spent already")
    (reason,) = POLICY.reasons_against(study(rows_per_person=1), around)
    assert reason.startswith("it costs a person epsilon 1, epsilon 3.5 is spent")
    half = circumstances(cost=Spending.of(Fraction(1, 2)), spent_in_total=spent)
    assert POLICY.reasons_against(study(rows_per_person=1), half) == []


def test_every_reason_is_listed():
    reasons = POLICY.reasons_against(
        study("ab", method="floor", profile="paper", key_bits=2048),
        circumstances(cost=Spending.of(Fraction(9)), rows=5, data_as_of=None),
    )
    assert len(reasons) == 9


def test_a_fingerprint_is_the_same_however_it_is_typed():
    typed = FINGERPRINT.replace("-", " ").lower()
    policy = dataclasses.replace(POLICY, signers=(typed,))
    check(policy, study(signed_by="a"), circumstances())


def test_of_several_authorities_the_policy_must_allow_every_one():
    policy = dataclasses.replace(POLICY, curators=("ab:cd", "EF01"))
    assert policy.least_known(["AB:CD", "EF:01"]) == "AB:CD"
    check(policy, study(), circumstances(curator=policy.least_known(["AB:CD", "EF:01"])))
    with pytest.raises(PolicyError, match=r"99:99.*curators"):
        check(policy, study(), circumstances(curator=policy.least_known(["AB:CD", "99:99"])))


def test_masked_aggregation_needs_no_key():
    check(POLICY, study(key_bits=2048, aggregation=Aggregation.MASKED), circumstances())


def test_what_a_policy_leaves_out_is_decided_for_the_rows():
    policy = Policy.from_toml('[budget]\nepsilon_per_study = 0.5\nepsilon_in_total = "3/2"\n')
    assert policy.epsilon_per_study == Fraction(1, 2)
    assert policy.epsilon_in_total == Fraction(3, 2)
    assert policy.profiles == ("sound",)
    assert "clear" not in policy.aggregations
    assert policy.min_parties == 2
    assert policy.min_colluders == 1


def test_a_party_alone_has_nobody_to_withstand():
    policy = dataclasses.replace(POLICY, min_parties=1, min_colluders=5)
    check(policy, study("a", colluders=0), circumstances())
    check(policy, study("abc", colluders=2), circumstances())


def test_a_policy_approves_by_itself_what_a_known_signer_vouches_for():
    text = f'[approval]\nautomatic = true\n[study]\nsigners = ["{FINGERPRINT}"]\n'
    assert Policy.from_toml(BUDGET + text).automatic


BUDGET = '[budget]\nepsilon_per_study = "1"\nepsilon_in_total = "1"\n'


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", "budget.epsilon_per_study is missing"),
        ('[budget]\nepsilon_per_study = "1"\n', "epsilon_in_total is missing"),
        ('[budget]\nepsilon_per_study = "-1"\nepsilon_in_total = "1"\n', "above zero"),
        ('[budget]\nepsilon_per_study = true\nepsilon_in_total = "1"\n', "not a number"),
        ('[budget]\nepsilon_per_study = inf\nepsilon_in_total = "1"\n', "not a number"),
        (BUDGET + "[budgets]\n", "unknown section 'budgets'"),
        ("min_rows = 3\n" + BUDGET, "unknown section 'min_rows'"),
        (BUDGET + "[study]\nmin_party = 3\n", "unknown key 'study.min_party'"),
        (BUDGET + "[study]\nmin_parties = 0\n", "study.min_parties: expected a whole number"),
        (BUDGET + "[study]\nmin_parties = true\n", "study.min_parties: expected a whole number"),
        (BUDGET + "[study]\nmin_key_bits = 1024\n", "1024 is not one of 2048"),
        (BUDGET + '[study]\nmethods = ["magic"]\n', "'magic' is not one of"),
        (BUDGET + '[study]\nmethods = "subn+"\n', "list of texts"),
        (BUDGET + "[study]\nmethods = []\n", "the list is empty"),
        (BUDGET + "[study]\nmin_colluders = -1\n", "study.min_colluders: expected a whole number"),
        (BUDGET + "[approval]\nautomatic = true\n", "approval.automatic: needs study.signers"),
        (BUDGET + '[data]\nnot_before = "2024-01-01"\n', "data.not_before: expected a date"),
        (BUDGET + "[data]\nnot_before = 2024-01-01T00:00:00\n", "expected a date"),
        ("[budget", "not valid TOML"),
    ],
)
def test_a_policy_that_makes_no_sense_is_refused_by_name(text, named):
    with pytest.raises(InputError, match=f"^mine: .*{named}"):
        Policy.from_toml(text, where="mine")


def test_a_policy_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(InputError, match=r"none\.toml: cannot be read"):
        Policy.load(tmp_path / "none.toml")
    path = tmp_path / "policy.toml"
    path.write_text(SAMPLE)
    assert Policy.load(path) == POLICY


def test_studies_that_a_restored_ledger_lacks_are_written_off_by_their_digests():
    text = '[budget]\nepsilon_per_study = "1"\nepsilon_in_total = "3"\nforgotten = ["{}"]\n'
    policy = Policy.from_toml(text.format("ABCDEF0123456789"))
    assert policy.writes_off(bytes.fromhex("abcdef0123456789") + bytes(24))
    assert not policy.writes_off(bytes(32))
    for short in ("", "abc", "regional health"):
        with pytest.raises(InputError, match=r"budget\.forgotten: expected at least 16 digits"):
            Policy.from_toml(text.format(short))


def test_a_study_with_a_delta_is_allowed_where_the_owner_says_so():
    allowing = dataclasses.replace(POLICY, max_delta=DELTA)
    whole = Spending.of(rho_of(Fraction(1), DELTA), DELTA)
    proposed = study(delta=DELTA)
    assert allowing.reasons_against(proposed, circumstances(cost=whole)) == []
    often = Totals(of_rows=Spending.together([whole] * 10))
    assert allowing.reasons_against(proposed, circumstances(cost=whole, spent_in_total=often)) == []
    too_often = Totals(of_rows=Spending.together([whole] * 20))
    (reason,) = allowing.reasons_against(
        proposed, circumstances(cost=whole, spent_in_total=too_often)
    )
    assert "epsilon_in_total" in reason
    (reason,) = allowing.reasons_against(proposed, circumstances(cost=whole + whole))
    assert "epsilon_per_study" in reason
    assert allowing.caps.delta == DELTA


@pytest.mark.parametrize("written", ['"1e-9"', "1e-9", '"1/1000000000"'])
def test_the_delta_of_a_policy_is_exact(written):
    text = f'[budget]\nepsilon_per_study = "1"\nepsilon_in_total = "3"\nmax_delta = {written}\n'
    assert Policy.from_toml(text).max_delta == DELTA
    with pytest.raises(InputError, match=r"budget\.max_delta: 0\.1 is above"):
        Policy.from_toml(text.replace(written, "0.1"))


def test_a_year_may_have_a_budget_of_its_own():
    text = '[budget]\nepsilon_per_study = "1"\nepsilon_in_total = "4"\n'
    assert Policy.from_toml(text).caps.in_year is None
    policy = Policy.from_toml(text + 'epsilon_per_year = "3/2"\n')
    assert policy.caps.in_year == Fraction(3, 2)
