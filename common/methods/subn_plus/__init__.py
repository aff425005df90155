"""subn+: up to three noisy sums, and one model fitted to all of them."""
