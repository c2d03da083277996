"""`tera plan buy-or-rent`: find the utilisation at which an own host is cheaper than renting."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import click
from msgspec.structs import replace

from teraflock.app.local import Local
from teraflock.base.clock import today
from teraflock.base.filling import filled
from teraflock.base.money import decimal_text
from teraflock.cli.complete import complete_provider, complete_region
from teraflock.cli.offer.footer import UNSURE_GPU, rate_text
from teraflock.cli.output import gpus_text, remark, write_json
from teraflock.cli.plan.server import server_from, server_options
from teraflock.cli.svg import Series, line_chart
from teraflock.cli.table import Column, write_rows
from teraflock.offer.model import Mode, Query
from teraflock.offer.rules import price_in
from teraflock.offer.service import OfferService
from teraflock.offer.words import OfferWords, query_from
from teraflock.plan.buy_or_rent import (
    CURVE_STEPS,
    BreakEven,
    MachineRent,
    break_even,
    cheapest_rent,
    curves,
    own_month,
    rent_month,
)
from teraflock.plan.owned import Server, check, upkeep
from teraflock.plan.recommend import is_choosable

MODES: Final[tuple[Mode, ...]] = ("on-demand", "spot", "monthly", "reserved")

HELP: Final = """Compare the cost of an own host with the cheapest offers of the same GPU model.

Shows the utilisation (the fraction of all hours in use) at which buying becomes cheaper, for each purchase mode.

\b
Example:
  tera plan buy-or-rent --gpu V100 --count 2 --purchase 16000 --years 3 --watts 900 --power 0.15 --hosting 80 \\
    --staff 200 --resale 2000 --provider lambda --provider gcp --plot buy-or-rent.svg
"""


@click.command("buy-or-rent", help=HELP)
@server_options
@click.option(
    "--provider",
    multiple=True,
    metavar="NAME",
    help="Compare with offers of this provider only. Can be repeated.",
    shell_complete=complete_provider,
)
@click.option(
    "--region",
    multiple=True,
    metavar="PLACE",
    help="Compare with offers there only: `EU`, `US`, `germany`, `us-east-1`. Can be repeated.",
    shell_complete=complete_region,
)
@click.option(
    "--plot",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write a chart of monthly cost by utilisation to this SVG file.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    plot: Path | None, as_json: bool, provider: tuple[str, ...], region: tuple[str, ...], **words: Any
) -> None:
    with Local() as local:
        server = server_from("server", words, local.rates.known(words["currency"]), today(local.clock))
        check(server, local.rates)
        service = local.offers()
        asked = OfferWords(gpu=(server.gpu,), provider=provider, region=region)
        query = query_from(asked, service.providers, service.today())
        offered = partial(_rents, service, local, server.currency)
        rents = [
            rent
            for mode in MODES
            if (rent := cheapest_rent(server.gpu_count, mode, offered(replace(query, modes=(mode,)))))
        ]
    found = [break_even(server, rent) for rent in rents]
    drawn = curves(server, rents)
    if plot:
        series = [
            Series(
                each.label,
                tuple((100 * i / CURVE_STEPS, micros / 1e6) for i, micros in enumerate(each.micros)),
            )
            for each in drawn
        ]
        title = f"{server.gpu_count}× {server.gpu} over {server.years:g} years: monthly cost"
        plot.write_text(line_chart(title, "utilisation, %", f"{server.currency} per month", series), "utf-8")
    if as_json:
        write_json({"server": server, "upkeep": upkeep(server), "break_even": found, "curves": drawn})
        return
    _print(server, found)
    foreign = {rent.quoted_currency for rent in rents} - {server.currency}
    for other in sorted(foreign):
        remark(rate_text(other, server.currency, local.rates, today(local.clock)))
    if plot:
        remark(f"Chart written to {plot}")


def _rents(service: OfferService, local: Local, currency: str, query: Query) -> Iterator[MachineRent]:
    on = today(local.clock)
    for offer in service.each(replace(query, sort="price-per-gpu")):
        micros = price_in(offer, currency, local.rates, on, per="month")
        if is_choosable(offer) and offer.gpu_count and micros is not None:
            yield filled(MachineRent, offer, micros_per_month=micros)


def _print(server: Server, found: list[BreakEven]) -> None:
    cost, money = upkeep(server), server.currency
    price = decimal_text(server.purchase_micros, 2)
    click.echo(
        f"{server.gpu_count}× {server.gpu}, bought for {price} {money}, used for {server.years:g} years"
    )
    per = "per month"
    for what, micros in (
        ("capital, less resale", cost.capital_micros),
        ("hosting", cost.hosting_micros),
        ("staff", cost.staff_micros),
    ):
        click.echo(f"  {what:<22} {decimal_text(micros, 2):>12} {money} {per}")
    click.echo(f"  {'power':<22} {decimal_text(cost.power_micros_per_hour, 4):>12} {money} per hour of use")
    click.echo("")
    head = [
        Column("MODE"),
        Column("PROVIDER", worth=8),
        Column("MACHINES", worth=7),
        Column(f"{money} AT 50 %", right=True),
        Column(f"{money} AT 100 %", right=True),
        Column("VERDICT"),
        Column("AS OF", worth=6),
    ]
    own = f"1 × {gpus_text(server.gpu_count, server.gpu)}"
    rows = [["own", "", own, *_half_and_full(partial(own_month, server)), "", server.as_of]]
    for each in found:
        figures = _half_and_full(partial(rent_month, each.rent))
        rent = each.rent
        doubt = "" if UNSURE_GPU.isdisjoint(rent.flags) else "?"
        machines = f"{rent.machines} × {gpus_text(rent.gpu_count, rent.gpu)}{doubt}"
        rows.append([rent.mode, rent.provider, machines, *figures, _verdict(each), rent.as_of])
    write_rows(head, rows)
    remark(
        "\nAmounts are monthly costs at that utilisation: the fraction of 730 hours in which the machine is in use"
    )
    remark("Rents are those of the cheapest whole machines with at least that many GPUs together")
    if any(not UNSURE_GPU.isdisjoint(each.rent.flags) for each in found):
        remark("`?` marks a card or variant that is not certain; `--json` shows the reason in `flags`")
    if not found:
        remark("No offer with a price matches: leave out `--provider` or `--region`, or import a catalog")
    elif missing := [mode for mode in MODES if mode not in {each.rent.mode for each in found}]:
        remark(f"No offer with a price: {', '.join(missing)}")
    remark(
        "Not included: disks and traffic of rented machines, interruptions of spot machines, elasticity, failures,"
        " and the time until a bought host arrives"
    )


def _half_and_full(month: Callable[[float], int]) -> tuple[str, str]:
    return decimal_text(month(0.5), 2), decimal_text(month(1.0), 2)


def _verdict(found: BreakEven) -> str:
    return f"{found.verdict} {found.utilisation:.0%}" if found.utilisation is not None else found.verdict
