"""`tera offers` and its subcommands, one module each."""

from teraflock.cli.offer.list import command as command
