"""What a name means: cards, parts of cards and accelerators, from the words people and catalogs use.

Two questions, two answers. A *query* (`find_cards`, `find_kinds`) means every variant its words leave
open. An *import* (`resolve`) needs the one thing that stands behind an offer, takes the memory a catalog
lists to tell variants apart, and says when it had to take the commonest.
What holds: no word is passed over, so `RTX 6000` never finds `RTX 6000 Ada`; and the longest family that
the words begin with wins, so `RTX 6000 Ada` never finds `RTX 6000`.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache
from typing import Final

import msgspec

from teraflock.base.errors import UnknownName, unknown_name
from teraflock.catalog.cards import (
    SEE_ALL,
    all_accelerators,
    all_aliases,
    all_cards,
    all_slices,
    cards_by_id,
    families,
)
from teraflock.catalog.model import Accelerator, Card, Resolution, Slice
from teraflock.catalog.words import Wish, key_of, read_wish, words_of

MEMORY_TOLERANCE: Final = 0.08
"""Catalogs write 22,888 MiB for 24 GB (AWS, 7 % less) and 288 GB for the 270 of a B300 (7 % more)."""

RESOLUTIONS_MAX: Final = 4096
"""Kept in memory. A catalog of 112,000 offers has some 350 pairs of name and memory."""

COUNT_DIGITS_MAX: Final = 6
"""Of the cores in a TPU's name; the largest pods have some 18,000."""


def find_cards(text: str) -> tuple[Card, ...]:
    """Every card the words mean, the commonest first: `V100 32G` → both forms with 32 GB.

    Words that name a part of a card (MIG) find the cards that can be cut so.
    """
    cards = _cards_named(text)
    if not cards:
        raise _unknown(text)
    return cards


def find_parts(text: str) -> tuple[tuple[Card, Slice], ...]:
    """The parts of cards (MIG) the words mean, each with its card; none where they mean whole cards."""
    reading = _read(words_of(text))
    if reading is None or not reading.wish.part:
        return ()
    return tuple(_parts(_fitting(reading), reading.wish))


def find_kinds(text: str) -> tuple[str, ...]:
    """The ids of all cards and accelerators the words mean: what `--gpu` accepts."""
    cards = _cards_named(text)
    if cards:
        return tuple(card.id for card in cards)
    accelerators, _ = _accelerators_named(words_of(text))
    if not accelerators:
        raise _unknown(text)
    return tuple(accelerator.id for accelerator in accelerators)


@lru_cache(maxsize=RESOLUTIONS_MAX)
def resolve(name: str, memory_mib: float | None = None) -> Resolution | None:
    """The one thing a catalog means by `name`; None when nobody knows it.

    `memory_mib` is what the catalog lists for one GPU. It chooses among variants that the name leaves
    open; where no variant has that much, it is not believed.
    """
    listed_gb = memory_mib / 1024 if memory_mib and memory_mib > 0 else None
    reading = _read(words_of(name))
    if reading is None:
        return _resolve_accelerator(name)
    cards = _fitting(reading, listed_gb)
    if not cards:
        return None
    if reading.wish.part:
        return _resolve_part(cards, reading.wish, listed_gb)
    inferred = len(cards) > 1 or not reading.sure or cards[0] not in reading.cards
    return Resolution(card=cards[0], memory_bytes=cards[0].memory_bytes, inferred=inferred)


@lru_cache(maxsize=RESOLUTIONS_MAX)
def fits_variant(name: str, memory_mib: float) -> bool:
    """Whether some variant of what `name` means has about this much memory.

    Importers tell by it whether a catalog lists MiB or GiB, and for one GPU or for the whole machine.
    """
    memory_gb = memory_mib / 1024
    reading = _read(words_of(name))
    if reading is None:
        accelerators, _ = _accelerators_named(words_of(name))
        return any(_near(memory_gb, each.memory_gb) for each in accelerators if each.memory_gb)
    cards = _fitting(reading)
    if reading.wish.part:
        return any(_near(memory_gb, part.memory_gb) for _, part in _parts(cards, reading.wish))
    return any(_near(memory_gb, card.memory_gb) for card in cards + _other_than_said(reading, memory_gb))


class _Reading(msgspec.Struct, frozen=True):
    """A name split in two: the cards its front means, and what the rest asks of them."""

    cards: tuple[Card, ...]
    wish: Wish
    sure: bool
    by_memory: Sequence[tuple[float, tuple[Card, ...]]] = ()
    """What the same front means where the memory is that of another product."""


class _Index(msgspec.Struct, frozen=True):
    cards: Mapping[str, tuple[Card, ...]]
    by_memory: Mapping[str, Sequence[tuple[float, tuple[Card, ...]]]]
    unsure: frozenset[str]
    accelerators: Mapping[str, tuple[Accelerator, ...]]


@cache
def _index() -> _Index:
    """Everything a name may begin with, by key."""
    cards: dict[str, tuple[Card, ...]] = {}
    by_memory: dict[str, list[tuple[float, tuple[Card, ...]]]] = {}
    for family, variants in families().items():
        key = key_of(family)
        cards[key] = variants
        if variants[0].name.startswith("GeForce"):  # people say `4090`; workstation numbers are not unique
            cards.setdefault(key.removeprefix("rtx").removeprefix("gtx"), variants)
    for alias in all_aliases():
        target = families().get(alias.target) or (cards_by_id()[alias.target],)
        if alias.memory_gb is None:
            cards[key_of(alias.alias)] = target
        else:
            by_memory.setdefault(key_of(alias.alias), []).append((alias.memory_gb, target))
    unsure = frozenset(key_of(each.alias) for each in all_aliases() if not each.sure and not each.memory_gb)
    return _Index(cards, by_memory, unsure, _accelerators_by_key())


def _accelerators_by_key() -> dict[str, tuple[Accelerator, ...]]:
    by_key: dict[str, tuple[Accelerator, ...]] = {
        key_of(name): (each,) for each in all_accelerators() for name in (each.id, *each.aliases.split("|"))
    }
    by_key.pop("", None)  # of those without aliases
    by_key["tpu"] = tuple(each for each in all_accelerators() if each.kind == "TPU")
    return by_key


def _read(words: tuple[str, ...]) -> _Reading | None:
    """The longest family or alias the words begin with, of which the rest makes sense."""
    index = _index()
    for end in range(len(words), 0, -1):
        key = "".join(words[:end])
        cards = index.cards.get(key)
        if cards is None:
            continue
        wish = read_wish(words[end:])
        if wish is not None:
            return _Reading(cards, wish, key not in index.unsure, index.by_memory.get(key, ()))
    return None


def _cards_named(text: str) -> tuple[Card, ...]:
    reading = _read(words_of(text))
    if reading is None:
        return ()
    cards = _fitting(reading)
    if reading.wish.part:
        return tuple(dict.fromkeys(card for card, _ in _parts(cards, reading.wish)))
    return cards


def _fitting(reading: _Reading, listed_gb: float | None = None) -> tuple[Card, ...]:
    """The cards that have what the name asks for, and the memory a catalog lists if any has that."""
    wish = reading.wish
    cards = [card for card in reading.cards if _has_form(card, wish.form)]
    if wish.architecture:
        cards = [card for card in cards if wish.architecture in card.architecture.casefold()]
    if wish.memory_type:  # often written loosely, so it decides only between cards, never against all
        cards = [c for c in cards if c.memory_type.casefold().startswith(wish.memory_type)] or cards
    if wish.memory_gb is not None:
        return _nearest(cards, wish.memory_gb) or _other_than_said(reading, wish.memory_gb)
    if listed_gb is not None and not wish.part:
        return _nearest(cards, listed_gb) or _other_than_said(reading, listed_gb) or tuple(cards)
    return tuple(cards)


_PCIE_FORMS: Final = frozenset({"pcie", "server", "workstation", "max-q"})


def _has_form(card: Card, form: str | None) -> bool:
    """SXM without a number is any SXM; PCIe is also said of the editions of a PCIe card."""
    if form is None:
        return True
    has = card.form.casefold()
    return (
        has == form
        or (form == "pcie" and has in _PCIE_FORMS)
        or (form.startswith("sxm") and has.startswith("sxm") and "sxm" in (form, has))
    )


def _nearest(cards: Iterable[Card], memory_gb: float) -> tuple[Card, ...]:
    near = [card for card in cards if _near(memory_gb, card.memory_gb)]
    least = min((abs(card.memory_gb - memory_gb) for card in near), default=0.0)
    return tuple(card for card in near if abs(card.memory_gb - memory_gb) == least)


def _near(memory_gb: float, nominal_gb: float) -> bool:
    return abs(memory_gb - nominal_gb) <= MEMORY_TOLERANCE * nominal_gb


def _other_than_said(reading: _Reading, memory_gb: float) -> tuple[Card, ...]:
    """`RTX 6000` with 96 GB can only be the RTX PRO 6000."""
    for alias_gb, cards in reading.by_memory:
        if _near(memory_gb, alias_gb):
            return tuple(card for card in cards if _has_form(card, reading.wish.form))
    return ()


def _resolve_part(cards: Sequence[Card], wish: Wish, listed_gb: float | None) -> Resolution | None:
    parts = _parts(cards, wish)
    if wish.profile is None and wish.part_memory_gb is None:
        parts = [(c, part) for c, part in parts if listed_gb is not None and _near(listed_gb, part.memory_gb)]
    if not parts:
        return None
    card, part = parts[0]
    return Resolution(card=card, share=part.share, memory_bytes=part.memory_bytes, inferred=len(parts) > 1)


def _parts(cards: Sequence[Card], wish: Wish) -> list[tuple[Card, Slice]]:
    """The parts the words mean, with the card each is cut from."""
    return [
        (card, part)
        for card in cards
        for part in all_slices()
        if (part.family, part.card_memory_gb) == (card.family, card.memory_gb)
        and (wish.profile is None or part.profile == wish.profile)
        and (wish.part_memory_gb is None or part.memory_gb == wish.part_memory_gb)
    ]


def _resolve_accelerator(name: str) -> Resolution | None:
    accelerators, count = _accelerators_named(words_of(name))
    if not accelerators:
        return None
    accelerator = accelerators[0]
    chips = max(1, count // accelerator.count_per_chip)
    return Resolution(accelerator=accelerator, memory_bytes=accelerator.memory_bytes, chips=chips)


def _accelerators_named(words: tuple[str, ...]) -> tuple[tuple[Accelerator, ...], int]:
    """The accelerators the words mean, and the number at their end (1 if there is none)."""
    by_key = _index().accelerators
    whole = by_key.get("".join(words))
    if whole is not None:
        return whole, 1
    front, count = by_key.get("".join(words[:-1]), ()), words[-1] if words else ""
    if count.isdigit() and len(count) <= COUNT_DIGITS_MAX:
        return tuple(each for each in front if each.kind == "TPU"), int(count)
    return (), 1


def _unknown(text: str) -> UnknownName:
    known = [*families(), *(card.id for card in all_cards()), *(each.id for each in all_accelerators())]
    return unknown_name("GPU", text, known, see=SEE_ALL)
