"""A curator's key and parties' identities, made once per session."""

import pytest

from common.crypto.identities.identity import Identity
from common.crypto.paillier.blinding import FixedBaseBlinder
from common.crypto.paillier.keys import PrivateKey, generate_key_pair
from common.privacy.randomness import SeededRandomSource


@pytest.fixture(scope="session")
def private_key() -> PrivateKey:
    return generate_key_pair(2048, SeededRandomSource("the protocol tests' key"))


@pytest.fixture(scope="session")
def blinder(private_key: PrivateKey) -> FixedBaseBlinder:
    return FixedBaseBlinder(private_key.public_key, SeededRandomSource("blinding"))


@pytest.fixture(scope="session")
def identities() -> dict[str, Identity]:
    names = [f"party-{number}" for number in range(10)]
    return {name: Identity.generate(SeededRandomSource(name)) for name in names}
