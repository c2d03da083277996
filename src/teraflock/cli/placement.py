"""The options of `tera launch` about hosts and the queue, and the output of `--explain`."""

from typing import TYPE_CHECKING, Any

import click

from teraflock.base.clock import SystemClock
from teraflock.base.errors import BadInput
from teraflock.base.quantities import count_text
from teraflock.cli.options import with_options
from teraflock.cli.output import emphasised, remark
from teraflock.cli.parse import parse_pairs
from teraflock.cli.table import Column, write_rows
from teraflock.cli.waiting import NotDone, wait
from teraflock.words.queue import expected_text, place_text

if TYPE_CHECKING:
    from teraflock.client import Client
    from teraflock.wire.instance import InstanceAnswer
    from teraflock.wire.placement import PlacementAnswer
    from teraflock.wire.queue import QueuedAnswer

place_options = with_options(
    click.option(
        "--on", multiple=True, metavar="K=V", help="Only on hosts with this label, such as `zone=a`. Can be repeated."
    ),
    click.option(
        "--not-with",
        multiple=True,
        metavar="NAME|K=V",
        help="Never on the host of this instance, or of instances with this label. Can be repeated.",
    ),
    click.option(
        "--spread",
        type=click.Choice(["host", "zone", "region"]),
        help="With --instances: distribute them as evenly as possible.",
    ),
    click.option("--pack", is_flag=True, help="With --instances: use as few hosts as possible."),
    click.option(
        "--together",
        is_flag=True,
        help="With --instances: close to each other, on one host, else in one zone, else in one region.",
    ),
    click.option("--queue", is_flag=True, help="Wait for room instead of failing. See `tera queue`."),
    click.option(
        "--priority",
        type=click.IntRange(-100, 100),
        default=0,
        metavar="N",
        help="With --queue: start before your project's launches with a lower priority.",
    ),
    click.option(
        "--explain", is_flag=True, help="Show which host would be chosen and why. Launch nothing."
    ),
)  # fmt: skip


def place_from(words: dict[str, Any]) -> dict[str, Any]:
    """The fields of the request for the options about hosts and the queue."""
    if words["priority"] and not words["queue"]:
        raise BadInput("`--priority` needs `--queue`", hint="Add `--queue`")
    if sum((bool(words["spread"]), words["pack"], words["together"])) > 1:
        raise BadInput(
            "`--spread`, `--pack` and `--together` contradict each other", hint="Use only one of them"
        )
    return {
        "on": parse_pairs(words["on"], "--on"),
        "not_with": words["not_with"],
        "spread": words["spread"] or "",
        "pack": words["pack"],
        "together": words["together"],
        "queue": words["queue"],
        "priority": words["priority"],
    }


def write_placement(found: "PlacementAnswer") -> None:
    total = found.rejected_total + found.others_total + len(found.chosen)
    if not found.fits:
        click.echo(emphasised(f"Does not fit: {count_text(total, 'host')} considered"))
    for each in found.chosen:
        click.echo(emphasised(f"{each.host}: {count_text(each.instances, 'instance')}"))
    if found.why:
        click.echo(f"  why: {found.why}")
    if found.others:
        more = (
            f" and {found.others_total - len(found.others):,} more"
            if found.others_total > len(found.others)
            else ""
        )
        title = (
            "Also possible, best first" if found.fits else "Room for some of the instances, but not for all"
        )
        click.echo(f"\n{title}: {', '.join(found.others)}{more}")
    if found.rejected:
        click.echo("\nRejected:")
        columns = (
            Column("HOST", flexible=True), Column("REGION", worth=3), Column("ZONE", worth=4),
            Column("REASON", flexible=True), Column("DETAILS", worth=5),
        )  # fmt: skip
        write_rows(columns, [(e.host, e.region, e.zone, e.reason, e.details) for e in found.rejected])
    if found.rejected_total > len(found.rejected):
        counts = "; ".join(f"{count:,}: {reason}" for reason, count in found.reasons.items())
        remark(f"{found.rejected_total:,} hosts rejected ({counts})")
    remark("\nNothing was launched. Quotas and budgets were not checked")


def write_waiting(queued: "QueuedAnswer") -> None:
    """One line about a queued launch, and why it waits."""
    now = SystemClock().now()
    words = [queued.state]
    if queued.place:
        words.append(f"place {place_text(queued)}")
    if expected := expected_text(queued, now):
        words.append(f"expected start {expected}")
    click.echo(f"{queued.name or queued.id}: {', '.join(words)}")
    if queued.reason:
        remark(queued.reason)


def wait_until_launched(
    client: "Client", queued: "QueuedAnswer", seconds_max: float
) -> "tuple[InstanceAnswer, ...]":
    """Wait until a queued launch has started. Return its instances."""
    found = wait(
        lambda: client.queue.get(queued.id),
        lambda each: each.state != "waiting",
        lambda each: f"{each.name or each.id}: queued, place {place_text(each)}",
        seconds_max=seconds_max,
    )
    if found.state != "launched":
        raise NotDone(
            f"The queued launch `{found.name or found.id}` was not started: {found.reason or found.state}",
            hint="Launch again with other options",
        )
    return tuple(client.instances.get(id) for id in found.instance_ids)
