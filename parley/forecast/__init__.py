"""What a study would give and cost, before it is spent."""
