"""The words of `tera estimate` as a question of the domain, and its answer as the JSON that is promised."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from teraflock.base.errors import BadInput
from teraflock.base.quantities import parse_memory_bytes

if TYPE_CHECKING:
    from teraflock.catalog.model import Card
    from teraflock.estimate.model import Estimate, Question


def question_from(options: dict[str, Any], *, cards: "Sequence[Card]") -> "Question":
    from teraflock.estimate.model import Limit, Question

    if (options["epochs"] is None) != (options["samples"] is None):
        raise BadInput("`--epochs` and `--samples` belong together", hint="Or say `--steps`")
    for name in ("steps", "epochs", "samples"):
        if options[name] is not None and not 0 < options[name] < float("inf"):
            raise BadInput(f"`--{name}` is a number above 0, not {options[name]:g}")
    samples = options["epochs"] * options["samples"] if options["epochs"] is not None else None
    return Question(
        cards=cards,
        limits=[Limit(text, parse_memory_bytes(text)) for text in options["limits"]],
        gpus=options["gpus"],
        steps=options["steps"],
        samples=samples,
        host=options["host"],
        expandable_segments=options["expandable_segments"],
        coarse=options["source"] is not None,
    )


def cards_from(names: Sequence[str], *, limits: Sequence[str] = ()) -> "Sequence[Card]":
    from teraflock.catalog.cards import all_cards

    if not names and limits:
        return ()
    if not names or "all" in names:
        return [card for card in all_cards() if card.cuda or card.memory_gb]
    from teraflock.catalog.names import find_cards

    found: dict[str, Card] = {}
    for name in names:
        for card in find_cards(name):
            found.setdefault(card.id, card)
    return list(found.values())


def shape(estimate: "Estimate") -> dict[str, Any]:
    """The JSON that is promised; further fields may join, these stay."""
    import msgspec

    shape: dict[str, Any] = msgspec.to_builtins(estimate)
    for row in shape["gpus"]:
        if row["hours"] is None:
            del row["hours"]
    return shape
