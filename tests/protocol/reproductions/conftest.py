"""One file for each failure that was found: what failed is the name, and must not come back."""

from tests.harness.small_study import identities
from tests.integration.conftest import consortium, gathering

__all__ = ["consortium", "gathering", "identities"]
