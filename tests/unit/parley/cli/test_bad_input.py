"""Bad input at the command: exit code 3, a message that names the place, and nothing written."""

import pytest

HEADER = "age,sex\n"
ROWS = "20,Female\n30,Male\n40,Female\n"

BAD_TABLES = {
    "missing column": ("age\n20\n", ["missing column", '"sex"']),
    "value outside the domain": (
        f"{HEADER}{ROWS}50,Femal\n60,Robot\n",
        ["sex", "row 5: 'Femal'", "row 6: 'Robot'"],
    ),
    "number outside the range": (f"{HEADER}{ROWS}100,Male\n", ["age", "row 5: 100", "0..99"]),
    "not a number": (f"{HEADER}{ROWS}old,Male\n", ["age", "row 5: 'old'"]),
    "six bad values, five shown": (
        HEADER + "".join(f"{20 + i},x{i}\n" for i in range(6)),
        ["6 cells", "row 6: 'x4'", ", ..."],
    ),
    "empty cell": (f"{HEADER}{ROWS},Male\n", ["age", "row 5", "missing = true"]),
    "no rows": (HEADER, ["no rows"]),
    "empty file": ("", ["empty"]),
    "duplicate column": ("age,sex,age\n20,Male,20\n", ["duplicate column", "age"]),
    "no delimiter": ("age/sex\n20/Male\n", ["--delimiter", "age/sex"]),
    "ragged row": (f"{HEADER}{ROWS}20,Male,extra\n", ["row 5 has 3"]),
    "open quotation mark": (f'{HEADER}{ROWS}20,"Male\n', ["quotation mark"]),
    "not UTF-8": (f"{HEADER}{ROWS}".encode() + b"20,M\xe4nnlich\n", ["UTF-8", "row 5", "0xe4"]),
}  # fmt: skip


@pytest.mark.parametrize(("data", "words"), BAD_TABLES.values(), ids=BAD_TABLES)
@pytest.mark.parametrize("method", ["privbayes", "privelet"])
def test_a_bad_table_is_named_and_nothing_is_written(parley, small, data, words, method):
    folder = small(data=data)
    done = parley("synthesize", "data.csv", "--schema", "schema.toml", "--method", method,
                  "--epsilon", 1, "--out", "release")  # fmt: skip
    assert done.code == 3
    assert all(word in done.err for word in ["data.csv", *words]), done.err
    assert "Traceback" not in done.err
    assert done.out == ""
    assert sorted(p.name for p in folder.iterdir()) == ["data.csv", "schema.toml"]


def test_a_table_that_is_not_there_is_named(parley, small):
    small()
    done = parley("synthesize", "dato.csv", "--schema", "schema.toml", "--epsilon", 1, "--out", "r")
    assert done.code == 3
    assert done.err == "error: dato.csv: no such file (did you mean 'data.csv'?)\n"


def test_a_parquet_file_that_is_none_is_named(parley, small):
    folder = small()
    (folder / "data.parquet").write_bytes(b"PAR1 nonsense")
    done = parley(
        "synthesize", "data.parquet", "--schema", "schema.toml", "--epsilon", 1, "--out", "r"
    )
    assert done.code == 3
    assert "data.parquet" in done.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--epsilon", "0"], "above zero"),
        (["--epsilon", "-1"], "above zero"),
        (["--epsilon", "much"], "'much' is not a number"),
        (["--epsilon", "inf"], "not a number"),
        (["--epsilon", "1", "--rows", "0"], "at least one row"),
        (["--epsilon", "1", "--encoding", "morse"], "'morse'"),
        (["--epsilon", "1", "--score", "Z"], "'Z'"),
        (["--epsilon", "1", "--beta", "1"], "beta"),
        (["--epsilon", "1", "--require", "age>sex"], "'age->income'"),
        (["--epsilon", "1", "--require", "age->sexx"], "did you mean 'sex'?"),
        (["--epsilon", "1", "--require", "age->sex", "--forbid", "age->sex"], "both"),
        (["--epsilon", "1", "--method", "privelet", "--variant", "privelet++"], "privelet++"),
    ],
)
def test_an_option_that_cannot_be_had_is_explained(parley, small, words, said):
    folder = small()
    done = parley("synthesize", "data.csv", "--schema", "schema.toml", "--out", "r", *words)
    assert done.code == 3
    assert said in done.err
    assert not (folder / "r").exists()


def test_an_unknown_method_is_a_usage_error(parley, small):
    small()
    done = parley("synthesize", "data.csv", "--schema", "schema.toml", "--epsilon", 1, "--out", "r",
                  "--method", "magic")  # fmt: skip
    assert done.code == 2


def test_a_domain_too_large_for_privelet_says_so_before_anything_is_spent(parley, study, tmp_path):
    done = parley("synthesize", study / "data.csv", "--schema", study / "schema.toml",
                  "--method", "privelet", "--epsilon", 1, "--out", "r")  # fmt: skip
    assert done.code == 3
    assert "PrivBayes" in done.err
    assert list(tmp_path.iterdir()) == []
