"""The front door: the public Python API and the `parley` command."""
