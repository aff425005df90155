"""Keys for the crypto tests: real ones, made once per session."""

import pytest

from common.crypto.paillier.blinding import FixedBaseBlinder
from common.crypto.paillier.keys import PrivateKey, PublicKey, generate_key_pair
from common.privacy.randomness import SeededRandomSource


@pytest.fixture(scope="session")
def private_key() -> PrivateKey:
    return generate_key_pair(2048, SeededRandomSource("the tests' key"))


@pytest.fixture(scope="session")
def public_key(private_key: PrivateKey) -> PublicKey:
    return private_key.public_key


@pytest.fixture(scope="session")
def blinder(public_key: PublicKey) -> FixedBaseBlinder:
    return FixedBaseBlinder(public_key, SeededRandomSource("the tests' blinding"))
