"""Every command in the operator's chapter can be typed as it stands there."""

import re
import shlex

import click
import pytest
from tests.documents.transcripts import ROOT

from teraflock.cli.main import tera

TEXT = (ROOT / "docs" / "operating.md").read_text("utf-8")
IN_BLOCKS = [line for block in re.findall(r"```\n(.*?)```", TEXT, re.DOTALL) for line in block.splitlines()]
COMMANDS = [line.partition("#")[0].strip() for line in IN_BLOCKS if line.startswith("tera ")]


def test_there_are_commands() -> None:
    assert len(COMMANDS) > 15


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_is_understood(line: str) -> None:
    command: click.Command = tera
    words = shlex.split(line)[1:]
    context = click.Context(tera, info_name="tera")
    while isinstance(command, click.Group):
        _, found, words = command.resolve_command(context, words)
        assert found is not None
        command = found
    command.make_context(command.name, list(words))
