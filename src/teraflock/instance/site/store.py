"""All SQL about sites."""

from datetime import datetime
from typing import Final

import msgspec

from teraflock.base.clock import at_microseconds, microseconds
from teraflock.instance.site.model import SiteRecord, SiteState
from teraflock.instance.states import ENDED
from teraflock.storage.database import Transaction
from teraflock.storage.table import Table, add_row, among, put_row
from teraflock.tenant.model import OrganisationId

_SITE: Final = Table("site", SiteRecord, leave_out=("is_kept",))


def records(tx: Transaction) -> tuple[SiteRecord, ...]:
    return tuple(_SITE.value(row, is_kept=True) for row in tx.all(f"{_SITE.select} ORDER BY name"))


def insert(tx: Transaction, record: SiteRecord, now: datetime) -> None:
    _SITE.add(tx, record, created_at_us=microseconds(now))


def remove(tx: Transaction, name: str) -> None:
    tx.run("DELETE FROM site WHERE name = :name", name=name)
    tx.run("DELETE FROM site_use WHERE site = :name", name=name)
    tx.run("DELETE FROM site_state WHERE site = :name", name=name)


def set_option(tx: Transaction, name: str, option: str, value: str) -> None:
    row = tx.one("SELECT options FROM site WHERE name = :name", name=name)
    options = {**(msgspec.json.decode(row[0]) if row else {}), option: value}
    text = msgspec.json.encode(options).decode()
    tx.run("UPDATE site SET options = :options WHERE name = :name", options=text, name=name)


def set_use(tx: Transaction, name: str, organisation: OrganisationId, *, may: bool) -> None:
    tx.run("DELETE FROM site_use WHERE site = :name AND organisation_id = :id", name=name, id=organisation)
    if may:
        add_row(tx, "site_use", site=name, organisation_id=organisation)


def uses(tx: Transaction) -> dict[str, tuple[str, ...]]:
    """The organisations that may rent machines at each site."""
    found: dict[str, tuple[str, ...]] = {}
    for site, organisation in tx.all("SELECT site, organisation_id FROM site_use ORDER BY organisation_id"):
        found[site] = (*found.get(site, ()), organisation)
    return found


def counts(tx: Transaction) -> dict[str, tuple[int, int]]:
    """The number of current hosts and instances of each site."""
    hosts = _counted(tx, "SELECT site, COUNT(*) FROM host WHERE gone_at_us IS NULL GROUP BY site")
    instances = _counted(
        tx, f"SELECT site, COUNT(*) FROM instance WHERE phase NOT IN {among(ENDED)} GROUP BY site"
    )
    return {site: (hosts.get(site, 0), instances.get(site, 0)) for site in {*hosts, *instances}}


def _counted(tx: Transaction, sql: str) -> dict[str, int]:
    return {row[0]: int(row[1]) for row in tx.all(sql)}


def names_for(tx: Transaction, organisation: OrganisationId) -> frozenset[str]:
    """The sites at which an organisation may rent machines."""
    rows = tx.all("SELECT site FROM site_use WHERE organisation_id = :id", id=organisation)
    return frozenset(row[0] for row in rows)


def states(tx: Transaction) -> dict[str, SiteState]:
    rows = tx.all("SELECT site, problem, since_us FROM site_state")
    return {
        site: SiteState(problem=problem, since=at_microseconds(since_us)) for site, problem, since_us in rows
    }


def note_state(tx: Transaction, site: str, problem: str, now: datetime) -> bool:
    """Record whether a site answers. Return whether that changed."""
    known = tx.one("SELECT problem FROM site_state WHERE site = :site", site=site)
    if known and known[0] == problem:
        return False
    put_row(tx, "site_state", "site", site=site, problem=problem, since_us=microseconds(now))
    return True
