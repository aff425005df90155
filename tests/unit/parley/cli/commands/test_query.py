"""`parley query` on releases of every method."""

import pytest


def test_queries_know_means_quantiles_groups_and_suggest_names(parley, releases):
    groups = parley(
        "query", "study", "age is not missing", "--by", "sex", "--tables", "5", "--json"
    )
    assert [each["group"] for each in groups.json] == ["Female", "Male"]
    total = sum(each["estimate"] for each in groups.json)
    assert total == pytest.approx(1_460, abs=150)
    done = parley("query", "study", "sex = Female", "--mean", "age", "--tables", "5")
    assert done.out.startswith("mean of age: ")
    assert "did you mean 'smoker'" in parley("query", "study", "smokr = true").err
    assert "did you mean 'Female'" in parley("query", "study", "sex = female").err
    assert "interval" in parley("query", "privelet", "sex = Male or smoker = true").out
