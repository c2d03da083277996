"""The words of `tera estimate` as a question of the domain, and its answer as the JSON that is promised."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from teraflock.base.errors import BadInput
from teraflock.base.quantities import parse_memory_bytes

if TYPE_CHECKING:
    from teraflock.catalog.model import Card
    from teraflock.estimate.model import Estimate, Limit, Question


def question_from(options: dict[str, Any], *, cards: "Sequence[Card]") -> "Question":
    from teraflock.estimate.model import Question

    if (options["epochs"] is None) != (options["samples"] is None):
        raise BadInput("`--epochs` and `--samples` belong together", hint="Or say `--steps`")
    for name in ("steps", "epochs", "samples"):
        if options[name] is not None and not 0 < options[name] < float("inf"):
            raise BadInput(f"`--{name}` is a number above 0, not {options[name]:g}")
    if options["tensor_parallel"] > 1:
        _refuse_slices(cards)
    samples = options["epochs"] * options["samples"] if options["epochs"] is not None else None
    return Question(
        cards=cards,
        limits=[_limit(text) for text in options["limits"]],
        gpus=gpus_of(options),
        tensor_parallel=options["tensor_parallel"],
        steps=options["steps"],
        samples=samples,
        host=options["host"],
        expandable_segments=options["expandable_segments"],
    )


def _refuse_slices(cards: "Sequence[Card]") -> None:
    from teraflock.estimate.derived import is_slice

    for card in cards:
        if is_slice(card):
            raise BadInput(
                f"{card.id} is a MIG slice, and slices cannot run a layer together",
                hint="Leave `--tensor-parallel` out, or name the whole card",
            )


def gpus_of(options: dict[str, Any]) -> int:
    """GPUs in all: those of `--gpus`, which tensor parallelism divides into groups, or one group."""
    ways: int = options["tensor_parallel"]
    gpus: int = options["gpus"] or ways
    if gpus % ways:
        raise BadInput(
            f"{gpus} GPUs cannot be divided into groups of {ways}",
            hint=f"Say `--gpus {max(ways, gpus // ways * ways)}`, or leave it out for one group",
        )
    return gpus


def _limit(text: str) -> "Limit":
    """GB is what a card is sold with, of which the driver and CUDA take some; GiB is what PyTorch may reserve."""
    from teraflock.estimate.cards import reservable_of_label
    from teraflock.estimate.model import Limit

    size = parse_memory_bytes(text)
    if text.strip().lower().endswith("ib"):
        return Limit(text, size)
    return Limit(text, reservable_of_label(size), label=True)


def cards_from(
    names: Sequence[str],
    *,
    limits: Sequence[str] = (),
    clock: float | None = None,
    power_limit: float | None = None,
) -> "Sequence[Card]":
    if not names and limits:
        return ()
    found = _named(names)
    if clock is None and power_limit is None:
        return found
    from teraflock.estimate.derived import throttled

    return [throttled(card, clock_mhz=clock, watts=power_limit) for card in found]


def _named(names: Sequence[str]) -> "list[Card]":
    """The cards of the catalog, slices of them, and those that the user added."""
    from teraflock.app.home import home
    from teraflock.app.own_cards import read_own_cards
    from teraflock.catalog.cards import all_cards

    own = read_own_cards(home())
    if not names or "all" in names:
        return [*(card for card in all_cards() if card.cuda or card.memory_gb), *own]
    from teraflock.catalog.names import find_parts
    from teraflock.catalog.words import key_of
    from teraflock.estimate.derived import sliced

    found: dict[str, Card] = {}
    for name in names:
        mine = [card for card in own if key_of(card.id) == key_of(name)]
        parts = [sliced(card, part) for card, part in find_parts(name)]
        for card in mine or parts or _whole(name):
            found.setdefault(card.id, card)
    return list(found.values())


def _whole(name: str) -> "Sequence[Card]":
    from teraflock.catalog.cards import cards_by_id
    from teraflock.catalog.names import find_cards, find_kinds

    kinds = find_kinds(name)  # an unknown name is told here
    if any(each in cards_by_id() for each in kinds):
        return find_cards(name)
    raise BadInput(
        f"{kinds[0]} is not estimated: scripts for CUDA do not run there without changes",
        hint="`tera offers` has its prices; `tera estimate` answers for NVIDIA cards, and roughly for AMD's Instinct",
    )


def shape(estimate: "Estimate") -> dict[str, Any]:
    """The JSON that is promised; further fields may join, these stay."""
    import msgspec

    shape: dict[str, Any] = msgspec.to_builtins(estimate)
    for row in shape["gpus"]:
        if row["hours"] is None:
            del row["hours"]
    return shape
