"""Prints what is known about one thing: a name and a value per line."""

from collections.abc import Iterable
from textwrap import wrap
from typing import Final

import click

from teraflock.cli.output import columns
from teraflock.cli.table import printable

VALUE_COLUMNS_MIN: Final = 20


def write_facts(pairs: Iterable[tuple[str, str]]) -> None:
    """Leaves out empty values and wraps long ones."""
    shown = [(name, value) for name, value in pairs if value]
    width = max((len(name) for name, _ in shown), default=0)
    for name, value in shown:
        head, *rest = _wrapped(printable(value), max(columns() - width - 4, VALUE_COLUMNS_MIN))
        click.echo(f"  {name.ljust(width)}  {head}")
        for line in rest:
            click.echo(f"  {' ' * width}  {line}")


def _wrapped(value: str, width: int) -> list[str]:
    """Wraps between words only: an address must stay in one piece."""
    return wrap(value, width, break_long_words=False, break_on_hyphens=False) or [""]
