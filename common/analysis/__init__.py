"""Numbers from a release or from rows: estimates, replicates, diagnostics, evaluation."""
