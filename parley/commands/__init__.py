"""The subcommands of `parley`: one thin module each."""
