"""`tera offers --by type`: one row per instance type, with its purchase modes side by side."""

from collections.abc import Sequence
from datetime import date

from teraflock.base.exchange import Rates
from teraflock.base.money import Period, decimal_text
from teraflock.base.quantities import memory_text
from teraflock.catalog.retired import retired_on
from teraflock.cli.offer.footer import exchange_texts, unsure_gpu
from teraflock.cli.output import gpus_text, remark, write_json
from teraflock.cli.table import Column, write_rows
from teraflock.offer.model import MODES, Query
from teraflock.offer.rules import price_in
from teraflock.offer.service import OfferService
from teraflock.offer.types import TypeLine
from teraflock.wire.offer import shape_type

DECIMALS = {"second": 6, "hour": 3, "month": 2}


def write_types(
    service: OfferService,
    query: Query,
    limit: int | None,
    rates: Rates,
    currency: str,
    per: Period,
    *,
    as_json: bool,
) -> None:
    lines = service.types(query)
    shown, on = lines[:limit], service.day_of(query)
    if as_json:
        write_json([shape_type(each, currency=currency, per=per, rates=rates, on=on) for each in shown])
        return
    modes = [mode for mode in MODES if any(mode in line.best for line in shown)]
    head = [
        Column("GPUS", middle=True),
        Column("MEMORY", right=True, worth=6),
        Column("PROVIDER"),
        Column("INSTANCE", flexible=True, middle=True),
        Column("VCPUS", right=True, worth=4),
        Column("RAM", right=True, worth=4),
    ]
    for mode in modes:
        worth = 9 if mode in ("on-demand", "spot") else 8
        head += [
            Column(f"{mode.upper()} {currency}/{per}", right=True, worth=worth),
            Column("IN", flexible=True, worth=7),
        ]
    head += [Column("REGIONS", right=True, worth=5), Column("AS OF", worth=5)]
    write_rows(head, [_cells(line, modes, rates, currency, per, on) for line in shown])
    more = "" if len(shown) == len(lines) else f" of {len(lines):,}; `--all` shows the rest"
    remark(f"\n{len(shown):,} instance types{more}. Each price is that of the cheapest region")
    best = [offer for line in shown for offer in line.best.values()]
    for sentence in exchange_texts(best, currency, rates, on):
        remark(sentence)
    if retired := [kind.name for line in shown if retired_on((kind := line.type).provider, kind.name)]:
        remark(f"Retired by their provider, and not planned with: {', '.join(dict.fromkeys(retired))}")
    if any(map(unsure_gpu, best)):
        remark("`?` marks a card or variant that is not certain; `--json` shows the reason in `flags`")


def _cells(
    line: TypeLine, modes: Sequence[str], rates: Rates, currency: str, per: Period, on: date
) -> list[str]:
    kind = line.type
    prices: list[str] = []
    for mode in modes:
        offer = line.best.get(mode)
        prices += [_price(line, mode, rates, currency, per, on), offer.region if offer else ""]
    return [
        gpus_text(kind.gpu_count, kind.gpu or kind.gpu_name or "no GPU", kind.gpu_share)
        + max(unsure_gpu(offer) for offer in line.best.values()),
        memory_text(kind.gpu_memory_bytes) if kind.gpu_memory_bytes else "",
        kind.provider,
        kind.name,
        "" if kind.vcpus is None else f"{kind.vcpus:g}",
        memory_text(kind.ram_bytes) if kind.ram_bytes else "",
        *prices,
        str(line.regions or ""),
        max(offer.as_of for offer in line.best.values()) or "unknown",
    ]


def _price(line: TypeLine, mode: str, rates: Rates, currency: str, per: Period, on: date) -> str:
    offer = line.best.get(mode)
    if offer is None:
        return ""
    micros = price_in(offer, currency, rates, on, per=per)
    return offer.standing if micros is None else decimal_text(micros, DECIMALS[per])
