"""Filter options that `tera offers` and other commands share."""

from collections.abc import Sequence
from typing import Any

import click

from teraflock.base.errors import one_of
from teraflock.cli.complete import (
    complete_currency,
    complete_gpu,
    complete_provider,
    complete_region,
    complete_source,
)
from teraflock.cli.options import with_options
from teraflock.offer.model import MODES, SORTS
from teraflock.offer.words import PERIODS


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


filter_options = with_options(
    click.option("--gpu", multiple=True, metavar="NAME", help="A GPU model, in any spelling. Can be repeated.",
                 shell_complete=complete_gpu),
    click.option("--count", metavar="N", help="GPUs per instance: `4`, `2-8` or `4+`; `0` for none."),
    click.option("--memory-min", metavar="GB", help="Minimum memory of each GPU."),
    click.option("--memory-total-min", metavar="GB", help="Minimum memory of all GPUs of an instance together."),
    click.option("--fp64-min", metavar="TFLOPS", help="Minimum double-precision speed of each GPU."),
    click.option("--int8-min", metavar="TOPS", help="Minimum dense INT8 speed of each GPU."),
    click.option("--fp8-min", metavar="TFLOPS", help="Minimum dense FP8 speed of each GPU."),
    click.option("--cores-min", metavar="N", help="Minimum number of cores of each GPU."),
    click.option("--graphics", is_flag=True, help="Only GPUs that render graphics (OpenGL and Vulkan)."),
    click.option("--ray-tracing", is_flag=True, help="Only GPUs with ray-tracing cores."),
    click.option("--encodes", metavar="FORMAT", help="Only GPUs that encode H.264, HEVC or AV1 video."),
    click.option("--vcpu-min", metavar="N", help="Minimum number of vCPUs."),
    click.option("--ram-min", metavar="GB", help="Minimum RAM."),
    click.option("--provider", multiple=True, metavar="NAME", help="Only this provider. Can be repeated.",
                 shell_complete=complete_provider),
    click.option("--region", multiple=True, metavar="PLACE", shell_complete=complete_region,
                 help="Only there: `EU`, `europe`, `US`, `germany`, `us-east-1`, `frankfurt`. Can be repeated."),
    click.option("--country", multiple=True, metavar="NAME",
                 help="Only this country: `DE`, `Germany`. Can be repeated."),
    click.option("--not-in", multiple=True, metavar="PLACE", help="Nowhere in this place. Can be repeated."),
    click.option("--mode", multiple=True, type=Suggested(MODES), help="Only this purchase mode. Can be repeated."),
    click.option("--source", multiple=True, metavar="NAME", help="Only offers from this source. Can be repeated.",
                 shell_complete=complete_source),
    click.option("--price-max", metavar="AMOUNT", help="Maximum price of an instance, in `--currency` per `--per`."),
    click.option("--sort", type=Suggested(SORTS), default="price", show_default=True, help="Sort by this."),
    click.option("--per", type=Suggested(PERIODS), default="hour", show_default=True,
                 help="Period of the prices shown; a month is 730 hours."),
    click.option("--currency", default="USD", show_default=True, metavar="CODE", help="Currency of the prices shown.",
                 shell_complete=complete_currency),
    click.option("--newer-than", metavar="AGE", help="Only prices confirmed since: `90d`, `6m`, `2026-01-31`."),
    click.option("--slices", is_flag=True, help="Include parts of GPUs."),
    click.option("--as-of", metavar="DATE", help="Show the prices of that day, such as `2022-12-31`."),
)  # fmt: skip
"""An option for each field of `offer.words.OfferWords`."""
