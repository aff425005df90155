"""Certificates: who a peer is, and the files that say so."""
