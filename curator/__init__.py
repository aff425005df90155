"""The code that the curator runs. It never sees a row, or a count without its noise."""
