"""The protocol: the agreed document, its messages, steps, scripts, sums and accounting."""
