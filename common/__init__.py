"""The pure library both services stand on: values in, values out."""
