"""Paillier encryption: keys, primes, blinding, packing of counts into plaintexts."""
