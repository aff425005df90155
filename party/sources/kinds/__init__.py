"""The kinds of sources, found by `party.sources.kind`: a module here with `KINDS` is enough."""
