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
    said = parley("describe", "study", "--pairs").out
    assert "triples counted together" in said
    for words in ("told well", "told roughly", "not measured"):  # as many as on the page
        (line,) = [line for line in said.splitlines() if line.startswith(f"{words}: ")]
        assert line.capitalize() in page
    assert "Not in this release" in (releases / "privelet" / "report.html").read_text()


def test_describe_says_in_ten_lines_what_may_be_concluded(parley, releases):
    said = parley("describe", "study").out.splitlines()
    assert "What may I conclude?" in said
    assert len(said) <= 12
    concluded = parley("describe", "study", "--json").json["conclusions"]
    assert len(concluded["pairs"]) + len(concluded["not_measured"]) == 3
    assert parley("describe", "privelet", "--json").json["conclusions"] is None
