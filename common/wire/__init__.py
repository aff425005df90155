"""What travels between curator and parties: encoding, errors, certificates, TLS.

`v1` is generated from protos/. Nothing outside this package, the curator's server and the party's
client needs to know protobuf or gRPC.
"""
