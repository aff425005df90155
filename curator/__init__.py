"""What the curator runs. Nothing here ever sees a row, or a count without its noise."""
