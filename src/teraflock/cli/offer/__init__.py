"""`tera offers`: the list itself, and its sub-commands, a module each."""

from teraflock.cli.offer.list import command as command
