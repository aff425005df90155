"""Designs: which sets of attributes to count so that every pair is in one of them."""
