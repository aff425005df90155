"""Identities of parties and curators: key pairs, sealed envelopes, their files."""
