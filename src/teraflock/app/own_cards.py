"""GPU models that the user added: a small JSON file in the home folder."""

from typing import Final

from teraflock.app.own_list import read_list, write_list
from teraflock.catalog.model import Card

FILE_NAME: Final = "cards.json"


def read_own_cards(home: str) -> list[Card]:
    return read_list(f"{home}/{FILE_NAME}", Card, "your own cards")


def write_own_cards(home: str, cards: list[Card]) -> None:
    write_list(f"{home}/{FILE_NAME}", cards)
