"""`parley describe` on releases of every method."""


def test_describe_names_every_pair_and_the_report_has_the_list(parley, releases):
    found = parley("describe", "study", "--json").json
    assert len(found["pairs"]) == 3
    assert {each["verdict"] for each in found["pairs"]} <= {
        "safe to use", "use with care", "not in this release",
    }  # fmt: skip
    assert all(
        each["residual_spread"] is None or each["follows"] in (True, False)
        for each in found["sums"]
    )
    page = (releases / "study" / "report.html").read_text()
    assert "What may be used together" in page
    assert "Not in this release" in page
    said = parley("describe", "study").out
    assert "triples counted together" in said
