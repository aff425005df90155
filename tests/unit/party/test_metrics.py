"""What an owner watches: studies in every state, what was paid, and bytes that left."""

from fractions import Fraction

from common.privacy.randomness import SeededRandomSource
from common.service.database import Database
from party.app import party_samples
from party.journal import Journal, JournalState
from party.ledger import Caps, Ledger, LedgerCharge
from tests.harness.consortium import authority

NOW = "2026-01-01T00:00:00+00:00"
CAPS = Caps(per_study=Fraction(9), in_total=Fraction(9))


def test_studies_budget_and_bytes_are_measured_as_they_are(tmp_path):
    files = authority(tmp_path / "hub").files
    with Database(tmp_path / "party.db") as file:
        journal, ledger = Journal(file, SeededRandomSource("books")), Ledger(file)

        def read():
            samples = party_samples(journal, ledger, files)
            return {(own.name, *own.labels.values()): own.value for own in samples}

        before = read()
        assert {before["parley_party_studies", state.value] for state in JournalState} == {0}
        for number, ending in enumerate((None, JournalState.FINISHED, JournalState.FINISHED)):
            study = bytes([number]) * 32
            journal.begin(study, name=str(number), data_digest="x", at=NOW)
            charge = LedgerCharge(
                study=study.hex(), study_name="s", step="m", mechanism="m", epsilon=Fraction(1, 4)
            )
            ledger.charge(charge, CAPS, NOW)
            if ending is not None:
                journal.end(study, ending, reason="", at=NOW)
        found = read()
    assert found["parley_party_studies", "running"] == 1
    assert found["parley_party_studies", "finished"] == 2
    for unit, epsilon in (("row", 0.75), ("person", 0)):
        assert found["parley_party_epsilon_spent", unit] == epsilon
        assert found["parley_party_rho_spent", unit] == 0
    assert found["parley_party_released_bytes",] == 0
    assert any("certificate" in name for name, *_ in found)
