"""Look up cards, parts of cards and accelerators by the names that users and catalogs write.

A *query* (`find_cards`, `find_kinds`) finds every variant that matches the name. An *import* (`resolve`) needs exactly
one result. It uses the memory in the catalog to choose a variant, and flags the result if it had to assume the most
common one.
Invariants: every word of a name counts, so `RTX 6000` never finds `RTX 6000 Ada`; the longest matching family wins, so
`RTX 6000 Ada` never finds `RTX 6000`.
"""

import re
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
    slices_of,
)
from teraflock.catalog.model import Accelerator, Card, CardSlice, Resolution
from teraflock.catalog.words import Variant, key_of, read_variant, words_of

MEMORY_TOLERANCE: Final = 0.08
"""Catalogs have 22,888 MiB for 24 GB (AWS, 7 % less) and 288 GB for the 270 of a B300 (7 % more)."""

RESOLUTIONS_MAX: Final = 4096
"""Size of the cache. A catalog of 112,000 offers has about 350 pairs of name and memory."""

COUNT_DIGITS_MAX: Final = 6
"""Digits of the number of cores in a TPU's name. The largest pods have about 18,000 cores."""


def find_cards(text: str) -> tuple[Card, ...]:
    """Find all cards that match a name, most common first: `V100 32G` → both forms with 32 GB.

    The name of a MIG partition finds the cards that support it.
    """
    cards = _cards_named(text)
    if not cards:
        raise _unknown(text)
    return cards


def find_parts(text: str) -> tuple[tuple[Card, CardSlice], ...]:
    """Find the MIG partitions that match a name, each with its card. Empty if the name means whole cards."""
    reading = _read(words_of(text))
    if reading is None or not reading.variant.part:
        return ()
    return tuple(_parts(_fitting(reading), reading.variant))


def find_kinds(text: str) -> tuple[str, ...]:
    """Return the ids of all cards and accelerators that match a name, as for `--gpu`."""
    cards = _cards_named(text)
    if cards:
        return tuple(card.id for card in cards)
    accelerators, _ = _accelerators_named(words_of(text))
    if not accelerators:
        raise _unknown(text)
    return tuple(accelerator.id for accelerator in accelerators)


@lru_cache(maxsize=RESOLUTIONS_MAX)
def resolve(name: str, memory_mib: float | None = None) -> Resolution | None:
    """Return what a catalog means by `name`, or None if the name is unknown.

    `memory_mib` is the memory of one GPU in the catalog. It selects among the variants that match the name. It is
    ignored if no variant has that much.
    """
    listed_gb = memory_mib / 1024 if memory_mib and memory_mib > 0 else None
    reading = _read(words_of(name))
    if reading is None:
        return _resolve_accelerator(name)
    cards = _fitting(reading, listed_gb)
    if not cards:
        return None
    if reading.variant.part:
        return _resolve_part(cards, reading.variant, listed_gb)
    inferred = len(cards) > 1 or not reading.sure or cards[0] not in reading.cards
    return Resolution(card=cards[0], memory_bytes=cards[0].memory_bytes, inferred=inferred)


@lru_cache(maxsize=RESOLUTIONS_MAX)
def fits_variant(name: str, memory_mib: float) -> bool:
    """Return whether a variant that matches `name` has about this much memory.

    Importers use this to find out whether a catalog has MiB or GiB, and of one GPU or of the whole machine.
    """
    memory_gb = memory_mib / 1024
    reading = _read(words_of(name))
    if reading is None:
        accelerators, _ = _accelerators_named(words_of(name))
        return any(_near(memory_gb, each.memory_gb) for each in accelerators if each.memory_gb)
    cards = _fitting(reading)
    if reading.variant.part:
        return any(_near(memory_gb, part.memory_gb) for _, part in _parts(cards, reading.variant))
    return any(_near(memory_gb, card.memory_gb) for card in cards + _other_product(reading, memory_gb))


class _Reading(msgspec.Struct, frozen=True):
    """A parsed name: the cards that its first words mean, and the variant that the other words describe."""

    cards: tuple[Card, ...]
    variant: Variant
    sure: bool
    by_memory: Sequence[tuple[float, tuple[Card, ...]]] = ()
    """What the same words mean if the memory is that of another product."""


class _Index(msgspec.Struct, frozen=True):
    cards: Mapping[str, tuple[Card, ...]]
    by_memory: Mapping[str, Sequence[tuple[float, tuple[Card, ...]]]]
    unsure: frozenset[str]
    accelerators: Mapping[str, tuple[Accelerator, ...]]


@cache
def _index() -> _Index:
    """Return every possible start of a name, by key."""
    cards: dict[str, tuple[Card, ...]] = {}
    by_memory: dict[str, list[tuple[float, tuple[Card, ...]]]] = {}
    for family, variants in families().items():
        key = key_of(family)
        cards[key] = variants
        if variants[0].name.startswith(
            "GeForce"
        ):  # `4090` is enough for GeForce; workstation numbers are ambiguous
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
    by_key.pop("", None)  # from accelerators without aliases
    by_key["tpu"] = tuple(each for each in all_accelerators() if each.kind == "TPU")
    return by_key


def _read(words: tuple[str, ...]) -> _Reading | None:
    """Find the longest family or alias at the start of the words, such that the other words make sense."""
    index = _index()
    for end in range(len(words), 0, -1):
        key = "".join(words[:end])
        cards = index.cards.get(key)
        if cards is None:
            continue
        variant = read_variant(words[end:])
        if variant is not None:
            return _Reading(cards, variant, key not in index.unsure, index.by_memory.get(key, ()))
    return None


def _cards_named(text: str) -> tuple[Card, ...]:
    reading = _read(words_of(text))
    if reading is None:
        return ()
    cards = _fitting(reading)
    if reading.variant.part:
        return tuple(dict.fromkeys(card for card, _ in _parts(cards, reading.variant)))
    return cards


def _fitting(reading: _Reading, listed_gb: float | None = None) -> tuple[Card, ...]:
    """Return the cards that match the name and, if any card has it, the memory in the catalog."""
    variant = reading.variant
    cards = [card for card in reading.cards if _has_form(card, variant.form)]
    if variant.architecture:
        cards = [card for card in cards if variant.architecture in card.architecture.casefold()]
    if variant.memory_type:  # often imprecise, so it may select among cards but never excludes all of them
        cards = [c for c in cards if c.memory_type.casefold().startswith(variant.memory_type)] or cards
    if variant.memory_gb is not None:
        return _nearest(cards, variant.memory_gb) or _other_product(reading, variant.memory_gb)
    if listed_gb is not None and not variant.part:
        return _nearest(cards, listed_gb) or _other_product(reading, listed_gb) or tuple(cards)
    return tuple(cards)


_DIVIDED_CHIPS: Final = frozenset({"Ampere GA100", "Hopper GH100", "Blackwell GB100", "Blackwell Ultra"})
"""Chips that support MIG on every card."""
_PCIE_FORMS: Final = frozenset({"pcie", "server", "workstation", "max-q"})


def _has_form(card: Card, form: str | None) -> bool:
    """Return whether the card has the form. SXM matches any SXM version. PCIe also matches editions of a PCIe card."""
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


def _other_product(reading: _Reading, memory_gb: float) -> tuple[Card, ...]:
    """Find another product by its memory: `RTX 6000` with 96 GB can only be the RTX PRO 6000."""
    for alias_gb, cards in reading.by_memory:
        if _near(memory_gb, alias_gb):
            return tuple(card for card in cards if _has_form(card, reading.variant.form))
    return ()


def _resolve_part(cards: Sequence[Card], variant: Variant, listed_gb: float | None) -> Resolution | None:
    parts = _parts(cards, variant)
    if variant.profile is None and variant.part_memory_gb is None:
        parts = [(c, part) for c, part in parts if listed_gb is not None and _near(listed_gb, part.memory_gb)]
    if not parts:
        return None
    card, part = parts[0]
    return Resolution(card=card, share=part.share, memory_bytes=part.memory_bytes, inferred=len(parts) > 1)


def _parts(cards: Sequence[Card], variant: Variant) -> list[tuple[Card, CardSlice]]:
    """Return the matching MIG partitions, each with its card."""
    return [
        (card, part)
        for card in cards
        for part in slices_of(card)
        if (variant.profile is None or part.profile == variant.profile)
        and (variant.part_memory_gb is None or part.memory_gb == variant.part_memory_gb)
    ]


def _resolve_accelerator(name: str) -> Resolution | None:
    accelerators, count = _accelerators_named(words_of(name))
    if not accelerators:
        return None
    accelerator = accelerators[0]
    chips = max(1, count // accelerator.count_per_chip)
    return Resolution(accelerator=accelerator, memory_bytes=accelerator.memory_bytes, chips=chips)


def _accelerators_named(words: tuple[str, ...]) -> tuple[tuple[Accelerator, ...], int]:
    """Return the matching accelerators, and the number at the end of the name (1 if there is none)."""
    by_key = _index().accelerators
    whole = by_key.get("".join(words))
    if whole is not None:
        return whole, 1
    front, count = by_key.get("".join(words[:-1]), ()), words[-1] if words else ""
    if count.isdigit() and len(count) <= COUNT_DIGITS_MAX:
        return tuple(each for each in front if each.kind == "TPU"), int(count)
    return (), 1


def _unknown(text: str) -> UnknownName:
    front, _, profile = text.strip().rpartition(" ")
    slices = {part.profile: None for part in all_slices() if front and key_of(part.family) == key_of(front)}
    known = [*families(), *(card.id for card in all_cards()), *(each.id for each in all_accelerators())]
    if re.fullmatch(r"\d+g\.\d+gb", profile.lower()):
        if slices:
            return UnknownName(f"{front} has no slice `{profile}`", hint=f"Its slices: {', '.join(slices)}")
        if key_of(front) in map(key_of, known):
            sliced = ", ".join(dict.fromkeys(part.family for part in all_slices()))
            divided = any(card.architecture in _DIVIDED_CHIPS for card in _cards_named(front))
            why = "Slices of {} are not known" if divided else "{} cannot be divided into slices"
            return UnknownName(why.format(front), hint=f"GPU models with slices: {sliced}")
    return unknown_name("GPU", text, known, see=SEE_ALL)
