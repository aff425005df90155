"""What a data owner runs, beside the data."""
