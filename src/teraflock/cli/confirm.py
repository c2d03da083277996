"""Confirmation of actions that lose data or cost money. Without a terminal they need `--yes`."""

import sys

import click

from teraflock.base.errors import BadInput


def confirm(question: str, act: str) -> None:
    """Return if the user answers yes; otherwise abort the command."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise BadInput(
            f"{act} needs confirmation, and there is no terminal to ask", hint="Add `--yes` to confirm"
        )
    if not click.confirm(question, err=True):
        raise click.Abort
