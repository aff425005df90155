"""The kinds of sources, found by `party.sources.settings`: a module here with `KINDS` is enough."""
