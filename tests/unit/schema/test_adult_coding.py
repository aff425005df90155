"""The research copy of Adult: our bins and its bins are the same, edge values included."""

import json

import numpy as np
import pandas as pd

from common.schema import Schema


def test_adult_is_coded_as_its_research_copy(shared_data):
    labels = json.loads((shared_data / "adult-labels.json").read_text())
    blocks = []
    for name, domain in labels.items():
        block = ["[[attribute]]", f"name = {json.dumps(name)}"]
        if isinstance(domain, dict):
            low, high = domain["range"]
            block += [
                'kind = "integer"',
                f"min = {low}",
                f"max = {high}",
                f"bins = {domain['bins']}",
            ]
        else:
            block += ['kind = "categorical"', f"values = {json.dumps(domain)}"]
        blocks.append("\n".join(block))
    schema = Schema.from_toml("\n\n".join(blocks))
    codes = schema.encode(pd.read_csv(shared_data / "adult-raw.csv"))
    expected = pd.read_csv(shared_data / "adult.csv")
    for name, column in zip(schema.names, codes.columns, strict=True):
        np.testing.assert_array_equal(column, expected[name], err_msg=name)
