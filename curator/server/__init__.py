"""The curator's one port: gRPC over mutual TLS."""
