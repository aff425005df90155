"""The tables of the curator's store.

`content` holds what is queued for parties, once for all recipients; `secret` holds keys, and is
emptied when a study ends. `step` is for people who watch: what was opened when and at what cost;
it stays.
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
CREATE TABLE IF NOT EXISTS abort_request (
    study BLOB PRIMARY KEY REFERENCES study (study),
    reason TEXT NOT NULL,
    asked_at TEXT NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS approval (
    study BLOB NOT NULL REFERENCES study (study),
    party TEXT NOT NULL,
    signature BLOB NOT NULL,
    approved_at TEXT NOT NULL,
    PRIMARY KEY (study, party)
) STRICT;
CREATE TABLE IF NOT EXISTS incoming (
    study BLOB NOT NULL REFERENCES study (study),
    number INTEGER NOT NULL,
    sender TEXT NOT NULL,
    sequence INTEGER NOT NULL,
    digest BLOB NOT NULL,
    body BLOB,
    effects TEXT NOT NULL,
    received_at TEXT NOT NULL,
    PRIMARY KEY (study, number),
    UNIQUE (study, sender, sequence)
) STRICT;
CREATE TABLE IF NOT EXISTS content (
    study BLOB NOT NULL REFERENCES study (study),
    digest BLOB NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (study, digest)
) STRICT;
CREATE TABLE IF NOT EXISTS outgoing (
    study BLOB NOT NULL REFERENCES study (study),
    party TEXT NOT NULL,
    sequence INTEGER NOT NULL,
    digest BLOB NOT NULL,
    acknowledged INTEGER NOT NULL,
    PRIMARY KEY (study, party, sequence)
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
CREATE TABLE IF NOT EXISTS secret (
    study BLOB NOT NULL REFERENCES study (study),
    name TEXT NOT NULL,
    value BLOB NOT NULL,
    PRIMARY KEY (study, name)
) STRICT;
"""
