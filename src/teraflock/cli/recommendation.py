"""`tera recommend`: GPU models and offers for a purpose."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import click

from teraflock.app.local import Local
from teraflock.base.money import decimal_text
from teraflock.base.quantities import significant_text
from teraflock.catalog.purpose import PURPOSES
from teraflock.cli.offer.filters import Suggested, filter_options
from teraflock.cli.offer.footer import rate_text, unsure_gpu
from teraflock.cli.offer.list import SORT_UNITS
from teraflock.cli.output import remark, write_json
from teraflock.cli.table import Column, write_rows
from teraflock.plan.recommend import LIMIT, SORT_FOR, RecommendationWords, recommend
from teraflock.wire.offer import OfferShape
from teraflock.wire.recommendation import AvoidedShape, RecommendationShape, ShownTerms, shape_recommendation

AVOID_SHOWN: Final = 5

HELP: Final = """Recommend GPU models and their cheapest offers for a purpose.

PURPOSE is training, large-training, inference, hpc, rendering, video or learning. Cards are ranked by the price of what
matters for the purpose: tensor TFLOPS for training, INT8 for inference, FP64 for HPC, FP32 for rendering. `learning`
lists machines from free to paid. Takes the filters of `tera offers`.

\b
Examples:
  tera recommend training --memory-min 24
  tera recommend inference --mode on-demand --region us-east
  tera recommend learning
"""


@click.command(help=HELP)
@click.argument("purpose", type=Suggested(PURPOSES), metavar="PURPOSE")
@filter_options
@click.option("--limit", type=int, default=LIMIT, show_default=True, help="Number of GPU models to show.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(as_json: bool, **words: Any) -> None:
    asked = RecommendationWords(**words)
    with Local() as local:
        service = local.offers()
        currency = local.rates.known(asked.currency)
        found = recommend(asked, service)
        today = service.today()
        shape = shape_recommendation(found, ShownTerms(currency, local.rates, today))
    if as_json:
        write_json(shape)
        return
    if shape.steps:
        _print_ladder(shape, currency)
    else:
        _print_cards(shape, currency, SORT_FOR[found.purpose])
    remark(f"\n{shape.advice}")
    shown = [each.offer for each in shape.cards] + [each for step in shape.steps for each in step.offers]
    if any(map(unsure_gpu, shown)):
        remark("`?` marks a card or variant that is not certain; `--json` shows the reason in `flags`")
    quoted = {each.quoted.currency for each in shown if each.quoted}
    for other in sorted(quoted - {currency}):
        remark(rate_text(other, currency, local.rates, today))
    if shape.avoid and not shape.steps:
        remark("Avoid: " + "; ".join(_avoided(shape.avoid)))


def _avoided(avoid: Sequence[AvoidedShape]) -> Iterator[str]:
    """Group the cards by the last part of their reason: `T4, P40 and 3 more (slow in double precision)`."""
    groups: dict[str, list[str]] = {}
    for each in avoid:
        groups.setdefault(each.reason.rpartition(": ")[2], []).append(each.gpu)
    for reason, gpus in groups.items():
        more = f" and {len(gpus) - AVOID_SHOWN} more" if len(gpus) > AVOID_SHOWN else ""
        yield f"{', '.join(gpus[:AVOID_SHOWN])}{more} ({reason})"


def _print_cards(shape: RecommendationShape, currency: str, sort: str) -> None:
    unit = SORT_UNITS.get(sort)
    head = [
        Column("GPU", middle=True),
        Column("FIT", worth=5),
        Column("WHY", flexible=True, worth=6),
        Column(f"{currency}/GPU-hour", right=True, worth=7 if unit else 9),
        *([Column(f"{currency}/{unit}-hour", right=True)] if unit else []),
        Column("PROVIDER"),
        Column("MODE", worth=8),
        Column("REGION", flexible=True, worth=4, middle=True),
        Column("AS OF", worth=3),
    ]
    rows = [
        [
            each.gpu + unsure_gpu(each.offer),
            each.fit,
            each.reason,
            _price(each.offer),
            *(
                [significant_text(each.price_per_unit) if each.price_per_unit is not None else ""]
                if unit
                else []
            ),
            each.offer.provider,
            each.offer.mode or "",
            each.offer.region,
            each.offer.as_of or "unknown",
        ]
        for each in shape.cards
    ]
    write_rows(head, rows)
    if not rows:
        remark("\nNo suitable GPU model has an offer that matches")


def _print_ladder(shape: RecommendationShape, currency: str) -> None:
    head = [
        Column("STEP"),
        Column("GPUS", middle=True),
        Column("PROVIDER"),
        Column(f"{currency}/hour", right=True),
        Column("REGION", flexible=True, worth=5),
        Column("AS OF", worth=4),
    ]
    rows = []
    for number, step in enumerate(shape.steps, start=1):
        name = f"{number}. {step.step}"
        rows += [
            [name if i == 0 else "", f"{each.gpu_count or 1}× {each.gpu or each.gpu_name}{unsure_gpu(each)}",
             each.provider,
             decimal_text(each.price_micros or 0, 3), each.region, each.as_of or "unknown"]
            for i, each in enumerate(step.offers)
        ] or [[name, "", "", "", "", ""]]  # fmt: skip
    write_rows(head, rows)
    remark("")
    for number, step in enumerate(shape.steps, start=1):
        remark(f"{number}. {step.step}: {step.advice}")


def _price(offer: OfferShape) -> str:
    return "" if offer.price_per_gpu_micros is None else decimal_text(offer.price_per_gpu_micros, 3)
