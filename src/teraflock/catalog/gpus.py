"""All GPUs: known cards, cards that the user added, and other accelerators."""

from collections.abc import Sequence

from teraflock.catalog.cards import all_accelerators, all_cards, cards_by_id
from teraflock.catalog.model import Accelerator, Card
from teraflock.catalog.names import find_kinds
from teraflock.catalog.words import key_of


def known_gpus(own_cards: Sequence[Card]) -> list[Card | Accelerator]:
    return [*all_cards(), *own_cards, *all_accelerators()]


def gpus_named(name: str, own_cards: Sequence[Card]) -> list[Card | Accelerator]:
    """Return every variant that matches a name, cards first. An unknown name gets an error with suggestions."""
    if mine := [card for card in own_cards if key_of(card.id) == key_of(name)]:
        return [*mine]
    ids = find_kinds(name)
    cards = cards_by_id()
    return [
        *(cards[id] for id in ids if id in cards),
        *(each for each in all_accelerators() if each.id in ids),
    ]
