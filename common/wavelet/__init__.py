"""Privelet: range counts under differential privacy by wavelet transforms."""
