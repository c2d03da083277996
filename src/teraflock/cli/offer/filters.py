"""The options of `tera offers` and of all commands that ask about offers."""

from collections.abc import Callable, Sequence
from typing import Any, Final

import click

from teraflock.base.errors import one_of
from teraflock.offer.model import MODES, SORTS
from teraflock.offer.words import PERIODS

Command = Callable[..., Any]


def filter_options(command: Command) -> Command:
    """Give a command an option for each field of `offer.words.OfferWords`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def _complete_gpu(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    from teraflock.catalog.cards import all_cards

    names = {name for card in all_cards() for name in (card.family, card.id)}
    return sorted(name for name in names if name.lower().startswith(incomplete.lower()))


def _complete_provider(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    from teraflock.catalog.providers import all_providers

    return [each.id for each in all_providers() if each.id.startswith(incomplete.lower())]


class OneOf(click.Choice[str]):
    """One of a few words. Any other gets an error with suggestions, as every unknown name does."""

    def __init__(self, kind: str, words: Sequence[str]) -> None:
        super().__init__(words)
        self._kind = kind

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        one_of(self._kind, value, self.choices)
        return str(value)


class Suggested(click.Choice[str]):
    """Words for help and completion. `offer.words` and `plan.words` check them with all others, as for the API."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return str(value)


_OPTIONS: Final = (
    click.option("--gpu", multiple=True, metavar="NAME", help="A card by any of its names; may be repeated.",
                 shell_complete=_complete_gpu),
    click.option("--count", metavar="N", help="GPUs in one instance: `4`, `2-8` or `4+`; `0` for none."),
    click.option("--memory-min", metavar="GB", help="Memory of each GPU, at least."),
    click.option("--memory-total-min", metavar="GB", help="Memory of all GPUs of the instance, at least."),
    click.option("--vcpu-min", metavar="N", help="vCPUs, at least."),
    click.option("--ram-min", metavar="GB", help="Main memory, at least."),
    click.option("--provider", multiple=True, metavar="NAME", help="A cloud; may be repeated.",
                 shell_complete=_complete_provider),
    click.option("--region", multiple=True, metavar="TEXT", help="Part of a region's or zone's name; may be repeated."),
    click.option("--mode", multiple=True, type=Suggested(MODES), help="How it is bought; may be repeated."),
    click.option("--source", multiple=True, metavar="NAME", help="What was imported under this name; may be repeated."),
    click.option("--price-max", metavar="AMOUNT", help="For the instance, in `--currency` per `--per`."),
    click.option("--sort", type=Suggested(SORTS), default="price", show_default=True, help="What is cheapest."),
    click.option("--per", type=Suggested(PERIODS), default="hour", show_default=True,
                 help="Period of the prices shown; a month is 730 hours."),
    click.option("--currency", default="USD", show_default=True, metavar="CODE", help="Currency of the prices shown."),
    click.option("--as-of", metavar="DATE", help="Prices as they stood on that day, such as `2022-12-31`."),
)  # fmt: skip
