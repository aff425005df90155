"""The release as a thing to hand on: what is in it, by whom it was signed, and in one file.

`manifest` lists the files by SHA-256, `signatures` signs that list, `finishing` puts both into a
release folder, `contents` reads a folder or a .zip without trusting it, `archive` makes the .zip,
`checking` compares, and `results` keeps what was published during a study. Whether the files agree
with each other is not asked here: `parley verify` does.
"""
