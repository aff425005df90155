"""Noise laws, one module each. Every module here that has a `LAW` is one (`laws_paid_in`)."""
