"""`tera offers`: the list itself, and its sub-commands, a module each."""

from teraflock.cli.offers.listing import command as command
