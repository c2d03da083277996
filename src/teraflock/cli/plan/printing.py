"""Print a plan: the table, the arithmetic of the first choice, and the reasons for rejections."""

from collections.abc import Iterable
from typing import Final

import click

from teraflock.base.money import MICROS, decimal_text
from teraflock.catalog.costs import EXTRA_WORDS
from teraflock.cli.offer.footer import UNSURE_GPU, UNSURE_PRICE, unsure_gpu
from teraflock.cli.output import columns, gpus_text, remark
from teraflock.cli.table import Column, render, write_rows
from teraflock.offer.model import FLAGS
from teraflock.plan.assumptions import Assumptions
from teraflock.plan.model import Choice, Plan, Wish, reason_text
from teraflock.plan.pipeline import ASSUMED
from teraflock.plan.rules import hours_text

CENT: Final = MICROS // 100
UNPRICED_SHOWN: Final = 3


def print_plan(
    plan: Plan, wish: Wish, assumptions: Assumptions, *, top: int, why: bool, explain: bool
) -> None:
    shown = plan.choices[:top]
    if shown:
        decimals = _decimals(choice.cost.expected_micros for choice in shown)
        write_rows(_columns(wish), [_cells(n, each, wish, decimals) for n, each in enumerate(shown, start=1)])
        remark(
            f"\n{len(shown)} of {len(plan.choices):,} options. * = no other option is both cheaper and faster"
        )
    if any(_is_unsure(choice) for choice in shown):
        remark("`?` marks uncertain values; `--explain` and `--json` have the reason")
    if free := _named_rejections(plan, ("free",)):
        remark(f"Free, but may end at any time: {free}; `--mode free` plans with them")
    if unpriced := _named_rejections(plan, ("price_unknown", "price_doubtful", "price_refused"), why=True):
        remark(f"Suitable, but the price is unknown or uncertain: {unpriced}")
    for warning in plan.warnings:
        remark(f"Note: {warning}")
    if any(choice.interruptions for choice in shown):
        rate = assumptions.interruptions_per_hour
        remark(
            f"Spot: {rate:g} interruptions per hour ({assumptions.interruptions_because}; as of {assumptions.as_of})"
        )
    if explain and shown:
        for line in _explained(shown[0]):
            click.echo(line)
    if counts := plan.counts():
        reasons = ", ".join(f"{reason_text(code)}: {count:,}" for code, count in counts.items())
        remark(f"Not chosen ({reasons})" + ("" if why else "; `--why` lists them"))
    if why:
        head = [Column("GPUS"), Column("PROVIDER"), Column("INSTANCE", flexible=True, worth=7), Column("MODE", worth=6),
                Column("OFFERS", right=True, worth=5), Column("REASON", flexible=True)]  # fmt: skip
        rows = [
            [f"{r.shape.gpu_count or '?'}× {r.shape.gpu or r.shape.gpu_name}", r.shape.provider, r.shape.instance_type,
             r.shape.mode or "", f"{r.shape.offers:,}", r.reason]
            for r in plan.rejected
        ]  # fmt: skip
        click.echo(render(head, rows, columns()))


def _columns(wish: Wish) -> list[Column]:
    columns = [
        Column("", right=True),
        Column("GPUS", middle=True),
        Column("PROVIDER"),
        Column("INSTANCE", flexible=True, worth=6, shortest=12, middle=True),
        Column("REGION", flexible=True, worth=7, shortest=10, middle=True),
        Column("MODE", worth=8),
        Column("TIME", right=True),
        Column(f"{wish.currency}{'/month' if wish.use == 'monthly' else ''}", right=True),
        Column("INCLUDES", flexible=True, worth=4),
        Column("AS OF", worth=5),
    ]
    if wish.sort == "risk":
        columns.insert(6, Column("INTERRUPTIONS", right=True))
    return columns


def _cells(rank: int, choice: Choice, wish: Wish, decimals: int) -> list[str]:
    shape = choice.shape
    others = [
        f"{part.what} {decimal_text(part.micros, decimals)}"
        for part in choice.parts
        if part.what in EXTRA_WORDS or (part.what != "rent" and part.micros >= CENT // 2)
    ]
    return [
        f"{rank}{'*' if choice.pareto else ' '}",
        _gpus(choice),
        shape.provider,
        shape.instance_type,
        choice.offer.region if choice.offer else "",
        shape.mode or "",
        *([f"{choice.interruptions:.1f}"] if wish.sort == "risk" else []),
        hours_text(choice.hours.p50),
        _amount(choice, decimals),
        ", ".join([*others, *(f"{EXTRA_WORDS[extra]} not counted" for extra in choice.uncounted)]),
        shape.as_of or "unknown",
    ]


def _decimals(amounts: Iterable[int]) -> int:
    """Two, or four if two would show a cost as nothing."""
    return 4 if any(0 < each < CENT for each in amounts) else 2


def _amount(choice: Choice, decimals: int) -> str:
    """Mark a cost that lacks a requested part with `+`, and a price that is uncertain with `?`."""
    unsure = choice.offer and not UNSURE_PRICE.isdisjoint(choice.offer.flags)
    marks = f"{'?' if unsure else ''}{'+' if choice.uncounted else ''}"
    return decimal_text(choice.cost.expected_micros, decimals) + marks


def _is_unsure(choice: Choice) -> bool:
    return bool(choice.offer and not (UNSURE_GPU | UNSURE_PRICE).isdisjoint(choice.offer.flags))


def _named_rejections(plan: Plan, codes: tuple[str, ...], *, why: bool = False) -> str:
    """List some of the machines that were rejected with one of these codes and are not also among the choices."""
    chosen = {(each.shape.provider, each.shape.gpu, each.shape.gpu_count) for each in plan.choices}
    found = dict.fromkeys(
        f"{gpus_text(each.shape.gpu_count, each.shape.gpu or each.shape.gpu_name, each.shape.gpu_share)}"
        f" at {each.shape.provider}" + (f" ({each.reason.partition(':')[0]})" if why else "")
        for each in plan.rejected
        if each.code in codes and (each.shape.provider, each.shape.gpu, each.shape.gpu_count) not in chosen
    )
    more = f" and {len(found) - UNPRICED_SHOWN:,} more" if len(found) > UNPRICED_SHOWN else ""
    return "; ".join(list(found)[:UNPRICED_SHOWN]) + more


def _gpus(choice: Choice) -> str:
    shape = choice.shape
    one = gpus_text(shape.gpu_count, shape.gpu or shape.gpu_name, shape.gpu_share)
    if choice.offer:
        one += unsure_gpu(choice.offer)
    return f"{choice.instances} × {one}" if choice.instances > 1 else one


def _explained(choice: Choice) -> list[str]:
    """Explain the cost of one choice, one sentence per part."""
    shape, cost, hours = choice.shape, choice.cost, choice.hours
    what = f"{_gpus(choice)} at {shape.provider}, {shape.mode or 'unknown purchase mode'}"
    lines = [f"\n{what}: {hours_text(hours.p50)}."]
    if hours.p10 != hours.p90:
        lines[0] += f" In 8 of 10 cases it takes {hours_text(hours.p10)} to {hours_text(hours.p90)}."
    labels = {
        "rent": "Work",
        "checkpoints": "Checkpoints",
        "address": "Public address",
        "interruptions": "Interruptions",
        "unused": "Unused time",
        "disk": "Disk",
        "egress": "Outgoing traffic",
    }
    lines += [
        f"{labels[part.what]}: {decimal_text(part.micros, 4)} {cost.currency} ({part.because})."
        for part in choice.parts
    ]
    decimals = _decimals((cost.low_micros, cost.high_micros))
    low, high = decimal_text(cost.low_micros, decimals), decimal_text(cost.high_micros, decimals)
    interval = f". In 8 of 10 cases it costs {low} to {high} {cost.currency}" if low != high else ""
    if hours.p10 != hours.p90:
        lines.append(f"{ASSUMED[:1].upper()}{ASSUMED[1:]}.")
    lines += [f"{labels[extra]}: not counted, the price is unknown." for extra in choice.uncounted]
    lines.append(f"Total: {decimal_text(cost.expected_micros, 4)} {cost.currency}{interval}.")
    if choice.offer:
        source = f"{choice.offer.source}, {choice.offer.cited}".removesuffix(", ")
        note = f" {choice.offer.note[:1].upper()}{choice.offer.note[1:]}." if choice.offer.note else ""
        lines += [
            f"Uncertain: {FLAGS[flag]}." for flag in choice.offer.flags if flag in UNSURE_GPU | UNSURE_PRICE
        ]
        lines.append(f"Price as of {choice.offer.as_of or 'an unknown date'}. Source: {source}.{note}")
    return lines
