"""`tera gpus`: the cards there are, and one in full with who offers it."""

from collections.abc import Iterator
from typing import ClassVar, Final

import click

from teraflock.base.money import decimal_text
from teraflock.base.quantities import memory_text
from teraflock.catalog.model import Accelerator, Card
from teraflock.cli.lazy import LazyGroup
from teraflock.cli.output import columns, emphasised, remark, write_json
from teraflock.cli.table import Column, render

HELP: Final = """GPU models: memory, speed, power, and who offers them.

Without NAME a table of all cards. With NAME, however it is written, each variant of the card in full, and the
cheapest offer of every provider.

\b
Examples:
  tera gpus
  tera gpus "Tesla V100-SXM2-32GB"
  tera gpus A100 --json
  tera gpus add card.yaml
"""
SHOW: Final = "show"  # the name of listing itself among the commands of the group; nobody writes it


class _Gpus(LazyGroup):
    """`tera gpus …` lists; `tera gpus add` and `remove` are commands of their own, loaded when they are called."""

    commands_by_name: ClassVar = {
        "add": ("teraflock.cli.gpu_own:add", "Add a card that is not in the catalog"),
        "remove": ("teraflock.cli.gpu_own:remove", "Remove a card that you added"),
    }

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not (args and args[0] in self.commands_by_name) and args[:1] not in (["--help"], ["-h"]):
            args = [SHOW, *args]
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        return (SHOW, show, args[1:]) if args[0] == SHOW else super().resolve_command(ctx, args)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        show.format_help(click.Context(show, info_name=ctx.command_path), formatter)
        self.format_commands(ctx, formatter)


def _complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    from teraflock.catalog.cards import families

    return [family for family in families() if family.lower().startswith(incomplete.lower())]


@click.command(SHOW, help=HELP)
@click.argument("name", required=False, shell_complete=_complete)
@click.option("--json", "as_json", is_flag=True, help="A JSON list of objects on stdout.")
def show(name: str | None, as_json: bool) -> None:
    if name is None:
        _all(as_json)
    else:
        _one(name, as_json)


command = _Gpus("gpus")


def _all(as_json: bool) -> None:
    from teraflock.app.home import home
    from teraflock.app.own_cards import read_own_cards
    from teraflock.catalog.cards import all_accelerators, all_cards
    from teraflock.catalog.gpus import known_gpus

    gpus = known_gpus(read_own_cards(home()))
    if as_json:
        from teraflock.wire.gpu import shape_gpu

        write_json([shape_gpu(each) for each in gpus])
        return
    cards = [_cells(each) for each in gpus if isinstance(each, Card)]
    click.echo(render(_COLUMNS, cards, columns()))
    compared = sum("compared with" in card.source for card in all_cards())
    remark(
        f"\n{len(all_cards())} cards. The figures are those of data sheets; {compared} were compared with other tables"
    )
    others = ", ".join(each.id for each in all_accelerators())
    remark(f"Listed with their prices, but without an estimate: {others}")


_COLUMNS: Final = [
    Column("GPU"),
    Column("MEMORY", right=True),
    Column("GB/S", right=True, worth=7),
    Column("FP32 TFLOPS", right=True, worth=8),
    Column("FP16 TENSOR", right=True, worth=6),
    Column("BF16", worth=5),
    Column("WATTS", right=True, worth=4),
    Column("YEAR", right=True, worth=4),
    Column("ARCHITECTURE", flexible=True, worth=3),
]


def _cells(card: Card) -> list[str]:
    return [
        card.id,
        f"{card.memory_gb:g} GB",
        _figure(card.bandwidth_gbs),
        _figure(card.fp32_tflops),
        _figure(card.fp16_tensor_tflops),
        "yes" if card.bf16 else "no",
        _figure(card.tdp_watts),
        str(card.year),
        f"{card.maker} {card.architecture}",
    ]


def _figure(value: float | None) -> str:
    """Nothing for what is not known, a dash for what the card does not have."""
    if value is None:
        return ""
    return f"{value:g}" if value else "–"


def _one(name: str, as_json: bool) -> None:
    from teraflock.app.local import Local
    from teraflock.base.clock import today
    from teraflock.catalog.gpus import gpus_named
    from teraflock.offer.model import Query
    from teraflock.offer.rules import price_in

    gpus = gpus_named(name)
    if as_json:
        from teraflock.wire.gpu import shape_gpu

        write_json([shape_gpu(each) for each in gpus])
        return
    with Local() as local:
        cheapest = local.offers().cheapest_by_provider(Query(gpus=tuple(each.id for each in gpus)))
    for each in gpus:
        click.echo("\n".join(_in_full(each) if isinstance(each, Card) else _other_in_full(each)) + "\n")
    if not cheapest:
        remark("No offer of it is known")
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
            best.offer.gpu,
            best.offer.mode or "",
            _price(price_in(best.offer, "USD", local.rates, today(local.clock), each=True)),
            best.offer.instance_type,
            best.offer.as_of or "unknown",
            f"{best.offers:,}",
        ]
        for best in cheapest
    ]
    click.echo(render(head, rows, columns()))


def _price(micros: int | None) -> str:
    return "unknown" if micros is None else decimal_text(micros, 3)


def _in_full(card: Card) -> Iterator[str]:
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
        ("bfloat16", "yes" if card.bf16 else "no"),
        ("CUDA", f"compute capability {card.compute_capability}" if card.cuda else "no"),
        ("NVLink", _with_unit(card.nvlink_gbs, "GB/s")),
        ("power", _with_unit(card.tdp_watts, "W")),
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
    yield f"  {'estimate':<12} none can be made for this kind"


def _with_unit(value: float | None, unit: str) -> str:
    if value is None:
        return "not known"
    return f"{value:g} {unit}" if value else "none"
