"""`tera gpus`: list GPU models, or show one with its offers."""

from collections.abc import Iterator
from typing import ClassVar, Final

import click

from teraflock.app.home import home
from teraflock.app.own_cards import read_own_cards
from teraflock.base.clock import today
from teraflock.base.money import decimal_text
from teraflock.base.quantities import memory_text
from teraflock.catalog.cards import all_accelerators, all_cards
from teraflock.catalog.model import Accelerator, Card
from teraflock.catalog.purpose import good_for
from teraflock.cli.complete import complete_family
from teraflock.cli.lazy import DefaultCommand, DefaultGroup
from teraflock.cli.output import emphasised, remark, write_json
from teraflock.cli.table import Column, write_rows
from teraflock.wire.gpu import shape_gpu

HELP: Final = """List GPU models with memory, speed and power, or show who offers one.

Without NAME, lists all GPU models. With NAME, in any spelling, shows every variant in detail and the cheapest offer of
each provider.

\b
Examples:
  tera gpus
  tera gpus "Tesla V100-SXM2-32GB"
  tera gpus A100 --json
  tera gpus add card.yaml
"""
_COLUMNS: Final = [
    Column("GPU"),
    Column("MEMORY", right=True),
    Column("GB/S", right=True, worth=7),
    Column("FP32 TFLOPS", right=True, worth=8),
    Column("FP16 TENSOR", right=True, worth=6),
    Column("INT8 TOPS", right=True, worth=4),
    Column("FP64 TFLOPS", right=True, worth=4),
    Column("BF16", worth=5),
    Column("WATTS", right=True, worth=4),
    Column("YEAR", right=True, worth=4),
    Column("ARCHITECTURE", flexible=True, worth=3),
]


class _Gpus(DefaultGroup):
    commands_by_name: ClassVar = {
        "add": ("teraflock.cli.gpu_own:add", "Add a GPU model that Teraflock does not know"),
        "remove": ("teraflock.cli.gpu_own:remove", "Remove a GPU model that you added"),
    }


@click.command("gpus", cls=DefaultCommand, help=HELP)
@click.argument("name", required=False, shell_complete=complete_family)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
def show(name: str | None, as_json: bool) -> None:
    if name is None:
        _all(as_json)
    else:
        _one(name, as_json)


command = _Gpus("gpus", show)


def _all(as_json: bool) -> None:
    from teraflock.catalog.gpus import known_gpus

    gpus = known_gpus(read_own_cards(home()))
    if as_json:
        write_json([shape_gpu(each) for each in gpus])
        return
    cards = [_cells(each) for each in gpus if isinstance(each, Card)]
    write_rows(_COLUMNS, cards)
    compared = sum("compared with" in card.source for card in all_cards())
    remark(
        f"\n{len(all_cards())} GPU models. Figures are from data sheets; {compared} were compared with other tables"
    )
    others = ", ".join(each.id for each in all_accelerators())
    remark(f"Offers are listed, but estimates are not supported: {others}")


def _cells(card: Card) -> list[str]:
    return [
        card.id,
        f"{card.memory_gb:g} GB",
        _figure(card.bandwidth_gbs),
        _figure(card.fp32_tflops),
        _figure(card.fp16_tensor_tflops),
        _figure(card.int8_tops),
        _figure(card.fp64_tflops),
        "yes" if card.bf16 else "no",
        _figure(card.tdp_watts),
        str(card.year),
        f"{card.maker} {card.architecture}",
    ]


def _figure(value: float | None) -> str:
    """Return an empty text for an unknown figure, and a dash for a feature that the card does not have."""
    if value is None:
        return ""
    return f"{value:g}" if value else "–"


def _one(name: str, as_json: bool) -> None:
    from teraflock.app.local import Local
    from teraflock.catalog.gpus import gpus_named
    from teraflock.cli.offer.footer import UNSURE_PRICE, exchange_texts, left_out_text, unsure_gpu
    from teraflock.offer.model import Query
    from teraflock.offer.rules import price_in

    gpus = gpus_named(name, read_own_cards(home()))
    if as_json:
        write_json([shape_gpu(each) for each in gpus])
        return
    with Local() as local:
        found = local.offers().cheapest_by_provider(Query(gpus=tuple(each.id for each in gpus)))
    for each in gpus:
        click.echo("\n".join(_in_full(each) if isinstance(each, Card) else _other_in_full(each)) + "\n")
    if not found.cheapest:
        remark("No offers are known")
        return
    head = [
        Column("PROVIDER"),
        Column("GPU", worth=8),
        Column("MODE"),
        Column("FROM USD/GPU-hour", right=True),
        Column("INSTANCE", flexible=True, worth=7),
        Column("AS OF", worth=6),
        Column("OFFERS", right=True, worth=5),
    ]
    rows = [
        [
            best.offer.provider,
            best.offer.gpu + unsure_gpu(best.offer),
            best.offer.mode or "",
            _price(price_in(best.offer, "USD", local.rates, today(local.clock), each=True))
            + ("" if UNSURE_PRICE.isdisjoint(best.offer.flags) else "?"),
            best.offer.instance_type,
            best.offer.as_of or "unknown",
            f"{best.offers:,}",
        ]
        for best in found.cheapest
    ]
    write_rows(head, rows)
    for sentence in exchange_texts(
        (each.offer for each in found.cheapest), "USD", local.rates, today(local.clock)
    ):
        remark(sentence)
    if found.retired:
        remark(left_out_text(found.retired, "`tera offers` lists them"))


def _price(micros: int | None) -> str:
    return "unknown" if micros is None else decimal_text(micros, 3)


def _fp64_tensor(card: Card) -> str:
    return f", {card.fp64_tensor_tflops:g} with tensor cores" if card.fp64_tensor_tflops else ""


def _graphics(card: Card) -> str:
    if card.graphics is None:
        return "unknown"
    return ("yes, with ray tracing" if card.ray_tracing else "yes") if card.graphics else "no"


def _video(card: Card) -> str:
    if card.encoders == 0:
        return "decodes only" if card.decoders else "none"
    count = "" if card.encoders is None else f" ({card.encoders} encoder{'s' if card.encoders != 1 else ''})"
    return f"encodes {card.encodes.replace(' ', ', ')}{count}" if card.encodes else "unknown"


def _in_full(card: Card) -> Iterator[str]:
    from teraflock.catalog.series import series_of_card

    yield emphasised(f"{card.id}: {card.name}")
    usable = f", {card.usable_memory_mib:,} MiB usable" if card.usable_memory_mib else ""
    facts = [
        ("made by", f"{card.maker}, {card.year}, {card.architecture}"),
        ("memory", f"{card.memory_gb:g} GB {card.memory_type}{usable}"),
        ("bandwidth", _with_unit(card.bandwidth_gbs, "GB/s")),
        ("FP32", _with_unit(card.fp32_tflops, "TFLOPS")),
        ("FP16", _with_unit(card.fp16_tflops, "TFLOPS without tensor cores")),
        ("TF32 tensor", _with_unit(card.tf32_tensor_tflops, "TFLOPS, dense")),
        ("FP16 tensor", _with_unit(card.fp16_tensor_tflops, "TFLOPS, dense, accumulating in FP32")),
        ("FP8 tensor", _with_unit(card.fp8_tensor_tflops, "TFLOPS, dense, accumulating in FP32")),
        ("INT8", _with_unit(card.int8_tops, "TOPS, dense")),
        ("FP64", _with_unit(card.fp64_tflops, "TFLOPS") + _fp64_tensor(card)),
        ("cores", f"{card.cores:,}" if card.cores else ""),
        ("bfloat16", "yes" if card.bf16 else "no"),
        ("CUDA", f"compute capability {card.compute_capability}" if card.cuda else "no"),
        (card.link_name, _with_unit(card.nvlink_gbs, "GB/s")),
        ("power", _with_unit(card.tdp_watts, "W")),
        ("graphics", _graphics(card)),
        ("video", _video(card)),
        ("good for", ", ".join(good_for(card))),
        ("sold as", ", ".join(f"{each.provider} {each.series}" for each in series_of_card(card))),
        ("note", card.note),
        ("source", card.source),
    ]
    for words, value in facts:
        if value:
            yield f"  {words:<12} {value}"


def _other_in_full(other: Accelerator) -> Iterator[str]:
    yield emphasised(f"{other.id}: {other.name}")
    memory = memory_text(other.memory_bytes) + " a chip" if other.memory_bytes else ""
    for words, value in (
        ("made by", other.maker),
        ("kind", other.kind),
        ("memory", memory),
        ("note", other.note),
    ):
        if value:
            yield f"  {words:<12} {value}"
    yield f"  {'estimate':<12} not supported for this kind"


def _with_unit(value: float | None, unit: str) -> str:
    if value is None:
        return "unknown"
    return f"{value:g} {unit}" if value else "none"
