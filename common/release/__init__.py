"""The release: how it is written, what it can be asked, and how it is checked.

`writing` makes the folder of a fitted model, `archive` its manifest, signatures and .zip.
`contents` reads a folder or a .zip without trusting it. `verify` checks its bytes and signatures,
`derive` whether the files follow from each other. `loading` reads the model back.
"""
