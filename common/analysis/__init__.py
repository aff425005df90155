"""Numbers from a release or from rows: estimates, diagnostics, evaluation, attacks."""
