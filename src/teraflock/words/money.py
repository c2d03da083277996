"""Amounts and counts as text."""

from collections.abc import Sequence

from teraflock.base.money import amount_text, decimal_text, decimals_for


def amount_column(amounts: Sequence[int], currency: str) -> list[str]:
    """The amounts of a column, all with the same number of decimals."""
    decimals = decimals_for(amounts)
    return [amount_text(each, currency, decimals) for each in amounts]


def hourly_text(micros: int, currency: str, decimals: int = 4) -> str:
    return f"{decimal_text(micros, decimals)} {currency}/h"


def years_text(years: int) -> str:
    return f"{years} year{'s' if years > 1 else ''}"
