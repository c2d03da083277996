"""A plan as people read it: the table, the arithmetic of the first choice, and the reasons."""

from typing import Final

import click

from teraflock.base.money import decimal_text
from teraflock.cli.output import columns, gpus_text, remark
from teraflock.cli.table import Column, render
from teraflock.plan.assumptions import Assumptions
from teraflock.plan.model import Choice, Plan, Wish
from teraflock.plan.rules import hours_text


def tell(plan: Plan, wish: Wish, assumptions: Assumptions, *, top: int, why: bool, explain: bool) -> None:
    shown = plan.choices[:top]
    if shown:
        click.echo(
            render(_columns(wish), [_cells(n, each) for n, each in enumerate(shown, start=1)], columns())
        )
        remark(f"\n{len(shown)} of {len(plan.choices):,} ways that do; * none is both cheaper and faster")
    if unpriced := _unpriced(plan):
        remark(f"Would do but for the price: {unpriced}")
    for warning in plan.warnings:
        remark(f"Mind: {warning}")
    if any(choice.interruptions for choice in shown):
        rate = assumptions.interruptions_per_hour
        remark(
            f"Spot: {rate:g} interruptions an hour ({assumptions.as_of}; {assumptions.interruptions_because})"
        )
    if explain and shown:
        for line in _explained(shown[0]):
            click.echo(line)
    if counts := plan.counts():
        reasons = ", ".join(f"{count:,} {code.replace('_', ' ')}" for code, count in counts.items())
        remark(f"Not chosen: {reasons}" + ("" if why else " (`--why` lists them)"))
    if why:
        head = [Column("GPUS"), Column("PROVIDER"), Column("INSTANCE", flexible=True, worth=7), Column("MODE", worth=6),
                Column("OFFERS", right=True, worth=5), Column("WHY NOT", flexible=True)]  # fmt: skip
        rows = [
            [f"{r.shape.gpu_count or '?'}× {r.shape.gpu or r.shape.gpu_name}", r.shape.provider, r.shape.instance_type,
             r.shape.mode or "", f"{r.shape.offers:,}", r.reason]
            for r in plan.rejected
        ]  # fmt: skip
        click.echo(render(head, rows, columns()))


def _columns(wish: Wish) -> list[Column]:
    return [
        Column("", right=True),
        Column("GPUS"),
        Column("PROVIDER"),
        Column("INSTANCE", flexible=True, worth=8),
        Column("REGION", flexible=True, worth=5),
        Column("MODE", worth=8),
        Column("TIME", right=True, worth=6),
        Column(f"{wish.currency}{'/month' if wish.use == 'monthly' else ''}", right=True),
        Column("OF WHICH", flexible=True, worth=4),
        Column("AS OF", worth=7),
    ]


def _cells(rank: int, choice: Choice) -> list[str]:
    shape = choice.shape
    others = [f"{part.what} {decimal_text(part.micros, 2)}" for part in choice.parts if part.what != "rent"]
    return [
        f"{rank}{'*' if choice.pareto else ' '}",
        _gpus(choice),
        shape.provider,
        shape.instance_type,
        choice.offer.region if choice.offer else "",
        shape.mode or "",
        hours_text(choice.hours.p50),
        decimal_text(choice.cost.expected_micros, 2),
        ", ".join(others),
        shape.as_of or "unknown",
    ]


def _unpriced(plan: Plan) -> str:
    """After the rest, and never chosen: what runs and suits, at a price that is not known or not believed."""
    found = dict.fromkeys(
        f"{gpus_text(each.shape.gpu_count, each.shape.gpu or each.shape.gpu_name, each.shape.gpu_share)}"
        f" at {each.shape.provider} ({each.reason.partition(':')[0]})"
        for each in plan.rejected
        if each.code in ("price_unknown", "price_doubtful", "price_refused")
    )
    more = f" and {len(found) - UNPRICED_SHOWN:,} more" if len(found) > UNPRICED_SHOWN else ""
    return "; ".join(list(found)[:UNPRICED_SHOWN]) + more


UNPRICED_SHOWN: Final = 3


def _gpus(choice: Choice) -> str:
    shape = choice.shape
    one = gpus_text(shape.gpu_count, shape.gpu or shape.gpu_name, shape.gpu_share)
    return f"{choice.instances} × {one}" if choice.instances > 1 else one


def _explained(choice: Choice) -> list[str]:
    """The arithmetic of one choice, sentence by sentence."""
    shape, cost, hours = choice.shape, choice.cost, choice.hours
    what = f"{_gpus(choice)} at {shape.provider}, {shape.mode or 'in a mode not told'}"
    lines = [f"\n{what}, takes {hours_text(hours.p50)}."]
    if hours.p10 != hours.p90:
        lines[0] += (
            f" Eight times of ten it takes between {hours_text(hours.p10)} and {hours_text(hours.p90)}."
        )
    said = {
        "rent": "The work itself costs",
        "interruptions": "Being interrupted costs",
        "unused": "What is paid for and not used costs",
        "disk": "The disk costs",
        "egress": "What leaves the cloud costs",
    }
    lines += [
        f"{said[part.what]} {decimal_text(part.micros, 4)} {cost.currency}: {part.because}."
        for part in choice.parts
    ]
    low, high = decimal_text(cost.low_micros, 2), decimal_text(cost.high_micros, 2)
    between = f", and between {low} and {high} with the time" if low != high else ""
    lines.append(f"Together that is {decimal_text(cost.expected_micros, 4)} {cost.currency}{between}.")
    if choice.offer:
        source = f"{choice.offer.source}, {choice.offer.cited}".removesuffix(", ")
        note = f" {choice.offer.note[:1].upper()}{choice.offer.note[1:]}." if choice.offer.note else ""
        lines.append(f"The price is of {choice.offer.as_of or 'an unknown day'}, from {source}.{note}")
    return lines
