"""A group whose commands are loaded when they are called, not before: cold start is a feature."""

import gc
from importlib import import_module
from typing import ClassVar

import click

from teraflock.base.errors import unknown_name


class LazyGroup(click.Group):
    """`commands_by_name`: for each command the module whose `command` it is, and its line in the help."""

    commands_by_name: ClassVar[dict[str, tuple[str, str]]]

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands_by_name)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.commands_by_name:
            return None
        gc.disable()  # as in main.py
        try:
            command: click.Command = import_module(self.commands_by_name[cmd_name][0]).command
        finally:
            gc.enable()
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in self.commands_by_name.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        known = not args or args[0] in self.commands_by_name or args[0].startswith("-")
        if not known and not ctx.resilient_parsing:  # a shell that completes wants no errors
            raise unknown_name(
                "command", args[0], self.commands_by_name, see=f"`{ctx.command_path} --help` lists them"
            )
        return super().resolve_command(ctx, args)
