"""`tera offers refresh PROVIDER`: import what an account's provider offers now, as the server last read it."""

import csv
import io
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from teraflock.app.local import Local
from teraflock.base.clock import today
from teraflock.base.errors import Refused
from teraflock.base.money import decimal_text
from teraflock.base.quantities import GIB
from teraflock.catalog.renting import RENTING
from teraflock.cli.connection import connected
from teraflock.offer.imports import import_offers
from teraflock.offer.model import AVAILABLE_MINUTES, LIVE_PREFIX
from teraflock.offer.tally import Origin, Report

if TYPE_CHECKING:
    from teraflock.wire.site import MachineTypeAnswer, SiteAnswer

LIST_AGE_MAX: Final = timedelta(days=1)
"""How old a list of everything that a provider sells may be. The server reads it every few hours."""
COLUMNS: Final = (
    "provider", "region", "instance_type", "gpu", "gpu_count", "vcpus", "ram_gb", "disk_gb", "mode", "price",
    "currency", "per", "as_of", "cited",
)  # fmt: skip


def is_live(name: str) -> bool:
    """Whether a source is a provider whose accounts can be asked."""
    return name in RENTING


def refresh_live(local: Local, provider: str) -> Report:
    """Import the machine types of all accounts at a provider. They replace those of the last time."""
    with connected() as client:
        names = [each.name for each in client.accounts.list() if each.provider == provider]
        sites = [client.sites.get(name) for name in names]
    fresh = fresh_sites(sites, local.clock.now(), is_stock=RENTING[provider].stock)
    if not fresh:
        raise _nothing_new(provider, sites)
    types = [each for site in fresh for each in site.types]
    day = today(local.clock).isoformat()
    with TemporaryDirectory(dir=local.home, prefix=".live-", ignore_cleanup_errors=True) as folder:
        path = Path(folder) / f"{provider}.csv"
        path.write_text(csv_of(provider, types, day), "utf-8")
        origin = Origin(
            source=f"{LIVE_PREFIX}{provider}", layout="teraflock", path=path, day_of=lambda _: day
        )
        return import_offers(local.database(to_write=True), local.rates, local.clock, origin)


def fresh_sites(sites: "Sequence[SiteAnswer]", now: datetime, *, is_stock: bool) -> "list[SiteAnswer]":
    """The sites whose provider answered lately: minutes ago if it lists only what is free, else within a day."""
    since = now - (timedelta(minutes=AVAILABLE_MINUTES) if is_stock else LIST_AGE_MAX)
    return [each for each in sites if each.types and each.types_at is not None and each.types_at >= since]


def _nothing_new(provider: str, sites: "Sequence[SiteAnswer]") -> Refused:
    times = [each.types_at for each in sites if each.types_at]
    if not times:
        return Refused(
            f"No account at `{provider}` has machine types yet",
            hint=f"Add one with `tera account add {provider}`, or wait a minute after adding it",
        )
    name = next(each.name for each in sites if each.types_at)
    return Refused(
        f"`{provider}` last said at {max(times):%Y-%m-%d %H:%M} UTC what it offers",
        hint=f"`tera account check {name}` says why it does not answer",
    )


def csv_of(provider: str, types: "Iterable[MachineTypeAnswer]", day: str) -> str:
    """Machine types in the CSV format of docs/offers-csv.md, one line for each price. Without those without GPUs."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    rows = {
        (
            provider, each.region, each.name, each.gpu, each.gpus, each.vcpus, f"{each.ram_bytes / GIB:g}",
            f"{each.disk_bytes / GIB:g}", mode, decimal_text(micros, 6), each.currency, "hour", day,
            f"API of {provider}, {day}",
        )
        for each in types
        if each.gpus
        for mode, micros in each.prices_micros_per_hour.items()
    }  # fmt: skip
    writer.writerows(sorted(rows))
    return text.getvalue()
