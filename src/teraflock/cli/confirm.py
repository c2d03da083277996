"""Questions before something is lost: asked on a terminal, refused where nobody can answer."""

import sys

import click

from teraflock.base.errors import BadInput


def confirm(question: str, act: str) -> None:
    """Returns where the answer is yes; anything else stops the command."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise BadInput(f"{act} needs a yes, and nobody can be asked here", hint="`--yes` says it beforehand")
    if not click.confirm(question, err=True):
        raise click.Abort
