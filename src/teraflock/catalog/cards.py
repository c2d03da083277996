"""The tables of cards, accelerators, slices and aliases, read from `data/` on first use.

Every command with a GPU reads all cards, so reading must be fast (about two milliseconds). The files are plain CSV with
the field names of `model.py` as columns, and msgspec converts them.
"""

import csv
import os
from collections.abc import Mapping
from functools import cache
from typing import TypeVar

import msgspec

from teraflock.base.errors import unknown_name
from teraflock.catalog.model import Accelerator, Alias, Card, CardSlice

SEE_ALL = "`tera gpus` lists all of them"

Row = TypeVar("Row")


@cache
def all_cards() -> tuple[Card, ...]:
    """Return all cards: NVIDIA first, oldest first, variants of a family together."""
    return table("cards.csv", Card)


@cache
def cards_by_id() -> Mapping[str, Card]:
    return {each.id: each for each in all_cards()}


def card(card_id: str) -> Card:
    """Return the card with this exact id. To find cards by name, use `names.find_cards`."""
    found = cards_by_id().get(card_id)
    if found is None:
        raise unknown_name("GPU", card_id, cards_by_id(), see=SEE_ALL)
    return found


@cache
def families() -> Mapping[str, tuple[Card, ...]]:
    """Return the cards of every family, most common first."""
    by_family: dict[str, list[Card]] = {}
    for each in all_cards():
        by_family.setdefault(each.family, []).append(each)
    return {family: tuple(sorted(cards, key=lambda c: c.rank)) for family, cards in by_family.items()}


@cache
def all_accelerators() -> tuple[Accelerator, ...]:
    return table("accelerators.csv", Accelerator)


@cache
def all_slices() -> tuple[CardSlice, ...]:
    return table("slices.csv", CardSlice)


def slices_of(card: Card) -> tuple[CardSlice, ...]:
    """Return the slices into which a card can be divided: those of its form, if they differ."""
    alike = [
        each for each in all_slices() if (each.family, each.card_memory_gb) == (card.family, card.memory_gb)
    ]
    own = tuple(each for each in alike if each.form == card.form)
    return own or tuple(each for each in alike if not each.form)


@cache
def all_aliases() -> tuple[Alias, ...]:
    return table("aliases.csv", Alias)


def table(file_name: str, row_type: type[Row]) -> tuple[Row, ...]:
    """Read a CSV file in `data/`. An empty cell means the default of the field."""
    with open(data_path(file_name), encoding="utf-8", newline="") as lines:  # noqa: PTH123, see data_path
        reader = csv.reader(lines)
        columns = next(reader)
        rows = [{column: cell for column, cell in zip(columns, row, strict=True) if cell} for row in reader]
    return msgspec.convert(rows, tuple[row_type, ...], strict=False)  # type: ignore[valid-type]


def data_path(file_name: str) -> str:
    # No pathlib or importlib.resources: importing them takes longer than reading the table.
    return os.path.join(os.path.dirname(__file__), "data", file_name)  # noqa: PTH118, PTH120
