"""Command groups: `NamingGroup` suggests similar commands, `LazyGroup` imports a command only when it runs."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, ClassVar, Final

import click

from teraflock.base.errors import unknown_name


class NamingGroup(click.Group):
    """A group that answers an unknown command with the most similar ones."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)  # in the order of their definition

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        is_known = not args or args[0].startswith("-") or self.get_command(ctx, args[0]) is not None
        if not is_known and not ctx.resilient_parsing:  # shell completion must not raise
            known = self.list_commands(ctx)
            raise unknown_name("command", args[0], known, see=f"`{ctx.command_path} --help` lists them")
        return super().resolve_command(ctx, args)


class LazyGroup(NamingGroup):
    """A group that imports each command when it runs.

    `commands_by_name` maps a name to its import path and help line. The path is a module with a `command`, or
    `module:name`.
    """

    commands_by_name: ClassVar[Mapping[str, tuple[str, str]]]
    hidden_by_name: ClassVar[Mapping[str, str]] = {}
    """Old names and their import paths. They work, but the help does not list them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands_by_name)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        path = self.hidden_by_name.get(cmd_name) or self.commands_by_name.get(cmd_name, ("",))[0]
        if not path:
            return None
        module, _, name = path.partition(":")
        command: click.Command = getattr(import_module(module), name or "command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self.write_section(formatter, "Commands", self.commands_by_name)

    def write_section(
        self, formatter: click.HelpFormatter, heading: str, commands: Mapping[str, tuple[str, str]]
    ) -> None:
        longest = max(map(len, self.commands_by_name))  # the same for all sections, so that they line up
        with formatter.section(heading):
            formatter.write_dl([(name.ljust(longest), line) for name, (_, line) in commands.items()])


DEFAULT: Final = (
    " "  # stands for the default command between parsing and resolving; nobody can type it by accident
)


class _DefaultContext(click.Context):
    @property
    def command_path(self) -> str:
        """The path of the group: users never type the name of its default command."""
        return self.parent.command_path if self.parent else super().command_path


class DefaultCommand(click.Command):
    context_class = _DefaultContext


class DefaultGroup(LazyGroup):
    """A group that runs its `default` command, or one of its subcommands."""

    def __init__(self, name: str, default: click.Command, **more: Any) -> None:
        super().__init__(name, **more)
        self._default = default

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not (args and args[0] in self.commands_by_name) and args[:1] not in (["--help"], ["-h"]):
            args = [DEFAULT, *args]
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        return (
            (DEFAULT, self._default, args[1:]) if args[0] == DEFAULT else super().resolve_command(ctx, args)
        )

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self._default.format_help(click.Context(self._default, info_name=ctx.command_path), formatter)
        self.format_commands(ctx, formatter)
