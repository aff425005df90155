"""What brings a role back after a crash: its messages, its randomness, and its replay."""
