"""The owner's side of a study: policy, dry run, review and decisions."""
