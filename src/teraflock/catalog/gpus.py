"""Which GPUs there are: the cards of the catalog, those the user added, and other accelerators."""

from collections.abc import Sequence

from teraflock.catalog.cards import all_accelerators, all_cards, cards_by_id
from teraflock.catalog.model import Accelerator, Card
from teraflock.catalog.names import find_kinds


def known_gpus(own_cards: Sequence[Card]) -> list[Card | Accelerator]:
    return [*all_cards(), *own_cards, *all_accelerators()]


def gpus_named(name: str) -> list[Card | Accelerator]:
    """Every variant that a name means, cards first. An unknown name gets an error with suggestions."""
    ids = find_kinds(name)
    cards = cards_by_id()
    return [
        *(cards[id] for id in ids if id in cards),
        *(each for each in all_accelerators() if each.id in ids),
    ]
