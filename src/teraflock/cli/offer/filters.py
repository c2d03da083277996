"""Filter options that `tera offers` and other commands share."""

from collections.abc import Callable, Sequence
from typing import Any, Final

import click

from teraflock.base.errors import one_of
from teraflock.offer.model import MODES, SORTS
from teraflock.offer.words import PERIODS

Command = Callable[..., Any]


def filter_options(command: Command) -> Command:
    """Add an option to a command for each field of `offer.words.OfferWords`."""
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
    """A choice of words. Other words get an error with suggestions."""

    def __init__(self, kind: str, words: Sequence[str]) -> None:
        super().__init__(words)
        self._kind = kind

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        one_of(self._kind, value, self.choices)
        return str(value)


class Suggested(click.Choice[str]):
    """Words for help and completion only. `offer.words` and `plan.words` check them, as they do for the API."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return str(value)


_OPTIONS: Final = (
    click.option("--gpu", multiple=True, metavar="NAME", help="A GPU model, in any spelling. Can be repeated.",
                 shell_complete=_complete_gpu),
    click.option("--count", metavar="N", help="GPUs per instance: `4`, `2-8` or `4+`; `0` for none."),
    click.option("--memory-min", metavar="GB", help="Minimum memory of each GPU."),
    click.option("--memory-total-min", metavar="GB", help="Minimum memory of all GPUs of an instance together."),
    click.option("--vcpu-min", metavar="N", help="Minimum number of vCPUs."),
    click.option("--ram-min", metavar="GB", help="Minimum RAM."),
    click.option("--provider", multiple=True, metavar="NAME", help="Only this provider. Can be repeated.",
                 shell_complete=_complete_provider),
    click.option("--region", multiple=True, metavar="PLACE",
                 help="Only there: `EU`, `europe`, `US`, `germany`, `us-east-1`, `frankfurt`. Can be repeated."),
    click.option("--country", multiple=True, metavar="NAME",
                 help="Only this country: `DE`, `Germany`. Can be repeated."),
    click.option("--not-in", multiple=True, metavar="PLACE", help="Nowhere in this place. Can be repeated."),
    click.option("--mode", multiple=True, type=Suggested(MODES), help="Only this purchase mode. Can be repeated."),
    click.option("--source", multiple=True, metavar="NAME", help="Only offers from this source. Can be repeated."),
    click.option("--price-max", metavar="AMOUNT", help="Maximum price of an instance, in `--currency` per `--per`."),
    click.option("--sort", type=Suggested(SORTS), default="price", show_default=True, help="Sort by this."),
    click.option("--per", type=Suggested(PERIODS), default="hour", show_default=True,
                 help="Period of the prices shown; a month is 730 hours."),
    click.option("--currency", default="USD", show_default=True, metavar="CODE", help="Currency of the prices shown."),
    click.option("--newer-than", metavar="AGE", help="Only prices confirmed since then: `90d`, `6m` or a date."),
    click.option("--slices", is_flag=True, help="Include parts of GPUs."),
    click.option("--as-of", metavar="DATE", help="Show the prices of that day, such as `2022-12-31`."),
)  # fmt: skip
