"""Every figure and table of the five papers, as a command."""
