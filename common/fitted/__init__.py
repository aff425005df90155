"""What a reader holds of a release: models that draw rows, given conditions, and count."""
