"""The release as a format: the files of the published folder, and how they are checked.

`archive` makes the manifest, the signatures and the .zip of a folder. `contents` reads a folder or
a .zip without trusting it. `verify` checks its bytes and signatures, `derive` whether the files
follow from each other. What a release can be asked is in `common.fitted` and `common.analysis`.
"""
