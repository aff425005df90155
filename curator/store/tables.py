"""The tables of the curator's store.

`paillier_key` is emptied when a study ends. `step` is for people who watch: what was opened when
and at what cost; it stays. `member` lists the parties of a study in their order; it is settled when
the study ended and the party has every message. `held` is a step that is opened when all of its
owners call; `awaited` says whose call or answer a study waits for; `alert` is what the operator's
webhook or command has not been told yet. Messages and step keys: `common.service.durable`.

What a running curator asks again and again has an index without the studies that are over, and the
queries name it: SQLite would rather read the table in its order.
"""

TABLES = """
CREATE TABLE IF NOT EXISTS party (
    name TEXT PRIMARY KEY,
    identity BLOB NOT NULL,
    software TEXT NOT NULL,
    seen_at TEXT NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS study (
    study BLOB PRIMARY KEY,
    name TEXT NOT NULL,
    document TEXT NOT NULL,
    state TEXT NOT NULL,
    step INTEGER NOT NULL,
    phase TEXT NOT NULL,
    cause TEXT NOT NULL,
    place TEXT NOT NULL,
    proposed_at TEXT NOT NULL,
    ended_at TEXT
) STRICT;
CREATE INDEX IF NOT EXISTS study_open ON study (study) WHERE ended_at IS NULL;
CREATE INDEX IF NOT EXISTS study_state ON study (state);
CREATE TABLE IF NOT EXISTS member (
    study BLOB NOT NULL REFERENCES study (study),
    party TEXT NOT NULL,
    settled INTEGER NOT NULL,
    PRIMARY KEY (study, party)
) STRICT;
CREATE INDEX IF NOT EXISTS member_of ON member (party);
CREATE INDEX IF NOT EXISTS member_open ON member (party) WHERE settled = 0;
CREATE TABLE IF NOT EXISTS held (
    study BLOB PRIMARY KEY REFERENCES study (study),
    body BLOB NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS awaited (
    study BLOB NOT NULL REFERENCES study (study),
    party TEXT NOT NULL,
    word TEXT NOT NULL,
    since TEXT NOT NULL,
    PRIMARY KEY (study, party)
) STRICT;
CREATE TABLE IF NOT EXISTS alert (
    number INTEGER PRIMARY KEY,
    study BLOB NOT NULL REFERENCES study (study),
    event TEXT NOT NULL,
    words TEXT NOT NULL,
    at TEXT NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS abort_request (
    study BLOB PRIMARY KEY REFERENCES study (study),
    reason TEXT NOT NULL,
    asked_at TEXT NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS missing_request (
    study BLOB NOT NULL REFERENCES study (study),
    party TEXT NOT NULL,
    asked_at TEXT NOT NULL,
    PRIMARY KEY (study, party)
) STRICT;
CREATE TABLE IF NOT EXISTS approval (
    study BLOB NOT NULL REFERENCES study (study),
    party TEXT NOT NULL,
    signature BLOB NOT NULL,
    approved_at TEXT NOT NULL,
    PRIMARY KEY (study, party)
) STRICT;
CREATE TABLE IF NOT EXISTS step (
    study BLOB NOT NULL REFERENCES study (study),
    number INTEGER NOT NULL,
    name TEXT NOT NULL,
    phase TEXT NOT NULL,
    opened_at TEXT NOT NULL,
    costs TEXT NOT NULL,
    links TEXT NOT NULL,
    PRIMARY KEY (study, number)
) STRICT;
CREATE TABLE IF NOT EXISTS paillier_key (
    study BLOB PRIMARY KEY REFERENCES study (study),
    key BLOB NOT NULL
) STRICT;
"""
