"""One peer on one table, run by the Python of `.venv-peers`: imports nothing of this project.

    python privbayes_peer_worker.py PEER INPUT.csv OUTPUT.csv EPSILON PARENTS

Reads a table of 0/1 columns, fits, writes as many synthetic rows, prints the seconds it took.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
import warnings
from pathlib import Path

import pandas as pd


def data_synthesizer(table: pd.DataFrame, epsilon: float, parents: int) -> pd.DataFrame:
    """DataSynthesizer in correlated attribute mode; it works on files."""
    from DataSynthesizer.DataDescriber import DataDescriber  # type: ignore[import-not-found]
    from DataSynthesizer.DataGenerator import DataGenerator  # type: ignore[import-not-found]

    with tempfile.TemporaryDirectory() as folder:
        rows, description = Path(folder, "rows.csv"), Path(folder, "description.json")
        table.to_csv(rows, index=False)
        describer = DataDescriber()
        describer.describe_dataset_in_correlated_attribute_mode(
            str(rows),
            epsilon=epsilon,
            k=parents,
            attribute_to_is_categorical=dict.fromkeys(table.columns, True),
        )
        describer.save_dataset_description_to_file(str(description))
        generator = DataGenerator()
        generator.generate_dataset_in_correlated_attribute_mode(len(table), str(description))
        made: pd.DataFrame = generator.synthetic_dataset
        return made


def dpart(table: pd.DataFrame, epsilon: float, parents: int) -> pd.DataFrame:
    """Run the PrivBayes engine of dpart; it takes categories as text."""
    from dpart.engines import PrivBayes  # type: ignore[import-not-found]

    engine = PrivBayes(epsilon=epsilon, n_parents=parents)
    engine.fit(table.astype(str))
    made: pd.DataFrame = engine.sample(len(table))
    return made


def dpmm(table: pd.DataFrame, epsilon: float, parents: int) -> pd.DataFrame:
    """Run dpmm's model after PrivBayes: (epsilon, delta), Gaussian noise, graphical model."""
    from dpmm.models.priv_bayes import PrivBayesGM  # type: ignore[import-not-found]

    model = PrivBayesGM(
        epsilon=epsilon, delta=1e-9, degree=parents, domain=dict.fromkeys(table.columns, 2)
    )
    model.fit(table)
    made: pd.DataFrame = model.generate(len(table))
    return made


def main() -> None:
    """Fit, write, and report."""
    warnings.simplefilter("ignore")
    peer, source, target, epsilon, parents = sys.argv[1:]
    table = pd.read_csv(source)
    run = {"DataSynthesizer": data_synthesizer, "dpart": dpart, "dpmm": dpmm}[peer]
    start = time.perf_counter()
    made = run(table, float(epsilon), int(parents))
    seconds = time.perf_counter() - start
    made.astype(int).to_csv(target, index=False)
    print(json.dumps({"seconds": seconds}))  # the last line is the answer; peers print before it


if __name__ == "__main__":
    main()
