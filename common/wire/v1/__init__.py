"""The wire contract, version 1: generated from protos/, never edited."""
