"""Amounts as people write and read them. All pure."""

from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

from teraflock.base.errors import BadInput
from teraflock.base.money import decimal_text, parse_micros

F = TypeVar("F", bound=Callable[..., Any])

month_option = click.option(
    "--month", metavar="YYYY-MM", default="", help="In UTC; left out: the present one."
)
SMALL_MICROS: Final = 1_000_000  # below one unit, two decimals would hide what a vCPU costs


def amount_text(micros: int, currency: str) -> str:
    """`12.50 USD`; small amounts with four places."""
    decimals = 4 if 0 < abs(micros) < SMALL_MICROS else 2
    return f"{decimal_text(micros, decimals)} {currency}".rstrip()


def hourly_text(micros: int, currency: str) -> str:
    return f"{decimal_text(micros, 4)} {currency}/h"


def parse_amount(text: str) -> int:
    """`"500"`, `"12.50"` → micro-units."""
    try:
        micros = parse_micros(text)
    except ValueError:
        micros = -1
    if micros < 0:
        raise BadInput(
            f"`{text}` is no amount", hint="Write it as `500` or `12.50`, in the project's currency"
        )
    return micros
