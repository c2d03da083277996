"""Amounts and months as users type them."""

import re
from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

from teraflock.base.errors import BadInput
from teraflock.base.money import parse_micros

F = TypeVar("F", bound=Callable[..., Any])

_MONTH: Final = re.compile(r"20\d\d-(0[1-9]|1[0-2])")


def checked_month(_: click.Context, parameter: click.Parameter, text: str) -> str:
    """Check a month before any request. For options and arguments."""
    if text and not _MONTH.fullmatch(text):
        name = f"--month {text}" if isinstance(parameter, click.Option) else text
        raise BadInput(f"`{name}` is not a month", hint="Write it as year and month: `2026-10`")
    return text


month_option = click.option(
    "--month",
    metavar="YYYY-MM",
    default="",
    callback=checked_month,
    help="The month, UTC. [default: this month]",
)
month_argument = click.argument("month", callback=checked_month)


def parse_amount(text: str, *, at_least: int = 0) -> int:
    """`"500"`, `"12.50"` → micro-units."""
    try:
        micros = parse_micros(text)
    except ValueError:
        micros = -1
    if 0 <= micros < at_least:
        raise BadInput("The amount must be above zero", hint="Write it as `500` or `12.50`")
    if micros < 0:
        raise BadInput(
            f"`{text}` is not an amount", hint="Write it as `500` or `12.50`, in the project's currency"
        )
    return micros
