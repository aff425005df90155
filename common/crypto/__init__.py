"""Secure aggregation: Paillier, packing, sums, envelopes and identities."""
