"""Every command in the documents can be typed as it is written there."""

import re
import shlex

import click
import pytest
from tests.documents.transcripts import ROOT

from teraflock.cli.main import tera

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
LINE = re.compile(r"^(?:    )?(tera [a-z].*)$", re.MULTILINE)
"""A command at the beginning of a line, in a fenced or an indented block."""


def commands(text: str) -> list[str]:
    lines = [re.split(r" +# | > ", line)[0] for line in LINE.findall(text)]
    return [part.strip() for line in lines for part in re.split(r"; (?=tera )", line)]


COMMANDS = {line: page.name for page in PAGES for line in commands(page.read_text("utf-8"))}


def test_there_are_commands() -> None:
    assert len(COMMANDS) > 50


@pytest.mark.parametrize("line", COMMANDS, ids=lambda line: f"{COMMANDS[line]}: {line}")
def test_a_command_is_understood(line: str) -> None:
    command: click.Command = tera
    words = shlex.split(line)[1:]
    context = click.Context(tera, info_name="tera")
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        _, found, words = command.resolve_command(context, words)
        assert found is not None
        command = found
    try:
        command.make_context(command.name, list(words))
    except click.BadParameter as error:
        if "does not exist" not in error.message:  # a file of the example need not be here
            raise
