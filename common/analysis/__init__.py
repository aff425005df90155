"""Numbers from a release or from rows: for an owner or an analyst, never part of a release."""
