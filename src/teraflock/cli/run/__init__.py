"""`tera run` and `tera runs`: one module each for the command, its files, its estimate and its subcommands."""
