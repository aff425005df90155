"""The name of a later study."""

import pytest

from curator.revision import next_name


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("health 2026", "health 2027"), ("2026, north", "2027, north"), ("health", "health 2031"),
        ("survey 120261", "survey 120261 2031"),
    ],
)  # fmt: skip
def test_the_year_in_a_name(earlier, later):
    assert next_name(earlier, 2031) == later
