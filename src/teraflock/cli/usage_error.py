"""What click says about wrong options and arguments, in the form of our own messages: one sentence and a hint."""

import re
from typing import Final

import click

from teraflock.base.errors import listed

_QUOTED: Final = re.compile(r"'([^'\n]+)'")
_CHOICES: Final = ". Choose from:"
_RANGE: Final = re.compile(r"(\S+) is not in the range (\S+)<=x<=(\S+)$")
_LEAST: Final = re.compile(r"(\S+) is not in the range x>=(\S+)$")


def sentence_and_hint(error: click.ClickException) -> tuple[str, str]:
    """The message of an error that click found, and what to do about it."""
    context = getattr(error, "ctx", None)
    see = f"See `{context.command_path} --help`" if context else ""
    if isinstance(error, click.NoSuchOption):
        near = f"Did you mean {listed(error.possibilities)}? " if error.possibilities else ""
        return f"No such option `{error.option_name}`", (near + see).strip()
    text, _, choices = error.format_message().rstrip(".").partition(_CHOICES)
    if choices:
        see = f"Choose {listed(choices.replace(',', ' ').split())}. {see}"
    text = _LEAST.sub(r"\1 is less than \2", _RANGE.sub(r"\1 is not from \2 to \3", text))
    return _QUOTED.sub(r"`\1`", text), see
