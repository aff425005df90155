from fractions import Fraction

from common.methods.variables import Variables
from common.privacy.randomness import SeededRandomSource
from tests.harness.run_script import random_tables, study_of


def test_sampled_bits_become_attributes_and_impossible_rows_are_drawn_again():
    (table,) = random_tables((3, 5), [50]).values()
    variables = Variables.of(
        study_of({"p0": table}, method="floor", encoding="binary", epsilon=Fraction(1))
    )
    source = SeededRandomSource("bits")
    (bits,) = random_tables(variables.sizes, [400], seed=2).values()
    drawn = variables.sample(lambda rows: bits.take(slice(0, rows)), 400, source)
    assert drawn.rows == 400
    assert drawn.sizes == (3, 5)
