"""Cards that the user added: a small JSON file in the user's folder."""

import os
from typing import Final

import msgspec

from teraflock.base.errors import BrokenSource
from teraflock.catalog.model import Card

FILE_NAME: Final = "cards.json"


def read_own_cards(home: str) -> list[Card]:
    path = f"{home}/{FILE_NAME}"
    if not os.path.exists(path):  # noqa: PTH110 -- see home.py
        return []
    with open(path, "rb") as file:  # noqa: PTH123
        content = file.read()
    try:
        return msgspec.json.decode(content, type=list[Card])
    except msgspec.MsgspecError as error:
        raise BrokenSource(f"Your cards in `{path}` cannot be read: {error}") from None


def write_own_cards(home: str, cards: list[Card]) -> None:
    from pathlib import Path

    from teraflock.app.files import put  # here: an estimate reads the cards and needs no pathlib

    put(Path(home, FILE_NAME), msgspec.json.format(msgspec.json.encode(cards), indent=2) + b"\n")
