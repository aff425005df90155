"""The methods of a study: one object per name, each a script of steps."""
