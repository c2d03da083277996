"""The sites of a server: one from the setting `engine`, more from the setting `sites`, and those in the database."""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from teraflock.app.settings import NO_ENGINE, Place, Settings
from teraflock.base.clock import Clock
from teraflock.base.errors import BadInput, TeraflockError
from teraflock.drivers.opening import Opening
from teraflock.drivers.registry import kind, open_site
from teraflock.instance.driver import ComputeDriver
from teraflock.instance.engines import Engines
from teraflock.instance.site.model import SiteRecord

if TYPE_CHECKING:
    from teraflock.drivers.lxd.driver import Lxd

LOG: Final = logging.getLogger("teraflock.engines")
FOLDER: Final = "engine"
SITE_OF_LXD: Final = "local"
"""The name of the site that the setting `engine` creates for LXD."""
OPEN: Final = "open"
"""The option, common to all sites, that lets all tenants rent machines there."""
KIND: Final = "kind"


def engine_mark(installation_id: str) -> str:
    """The mark on everything that an installation creates at its sites: the installation id without its prefix."""
    return installation_id.partition("_")[2]


class SiteKeys(msgspec.Struct, frozen=True, kw_only=True):
    """What drivers of clouds read from the installation: see `Opening`."""

    account_secret: Callable[[str], str] | None = None
    derive: Callable[[str], bytes] | None = None


NO_KEYS: Final = SiteKeys()


def open_engines(
    at: Place,
    settings: Settings,
    installation_id: str,
    clock: Clock,
    kept: Iterable[SiteRecord] = (),
    keys: SiteKeys = NO_KEYS,
) -> Engines:
    """Open all sites. A site in the settings that cannot be opened is an error. A site in the database is skipped, and
    `tera site list` shows the reason."""
    engines = Engines(())
    for record in of_settings(settings):
        _add(engines, at, record, installation_id, clock, keys)
    for record in kept:
        add_kept(engines, at, record, installation_id, clock, keys)
    return engines


def add_kept(
    engines: Engines,
    at: Place,
    record: SiteRecord,
    installation_id: str,
    clock: Clock,
    keys: SiteKeys = NO_KEYS,
) -> None:
    """Open a site from the database, or note why it failed."""
    try:
        _add(engines, at, record, installation_id, clock, keys)
    except TeraflockError as error:
        LOG.warning("cannot open the site %s: %s", record.name, error.sentence)
        engines.note_broken(record, error.sentence)


def synchronise(
    engines: Engines,
    at: Place,
    settings: Settings,
    kept: Sequence[SiteRecord],
    installation_id: str,
    clock: Clock,
    keys: SiteKeys = NO_KEYS,
) -> None:
    """Open and close sites of a running server so that they match the database."""
    fixed = {record.name for record in of_settings(settings)}
    for record in kept:
        if record.name not in fixed and engines.records.get(record.name) != record:
            add_kept(engines, at, record, installation_id, clock, keys)
    for name in set(engines.records) - fixed - {record.name for record in kept}:
        engines.drop(name)


def check_record(record: SiteRecord) -> None:
    """Refuse an unknown kind of site, one that is not added by hand, and options that its driver does not accept."""
    options = {name: value for name, value in record.options.items() if name != OPEN}
    found = kind(record.kind)
    if found.added_by:
        raise BadInput(f"A site of the kind `{record.kind}` cannot be added", hint=f"Use `{found.added_by}`")
    found.check(record.name, options)


def of_settings(settings: Settings) -> Iterator[SiteRecord]:
    """The sites in the settings, the one of `engine` first."""
    if settings.engine == "lxd":
        yield SiteRecord(name=SITE_OF_LXD, kind="lxd", options=lxd_options(settings))
    elif settings.engine == "simulated":
        yield SiteRecord(name="simulated", kind="simulated", options=_simulated_options(settings))
    elif settings.engine != NO_ENGINE:
        yield SiteRecord(name=settings.engine, kind=settings.engine)
    for name, options in settings.sites.items():
        others = {key: value for key, value in options.items() if key != KIND}
        yield SiteRecord(name=name, kind=options[KIND], options=others)


def lxd_driver(at: Place, settings: Settings, installation_id: str, clock: Clock) -> "Lxd":
    """The LXD driver of the setting `engine`. Does not set anything up."""
    from teraflock.drivers.lxd.site import driver_of  # load only the driver in use

    record = SiteRecord(name=SITE_OF_LXD, kind="lxd", options=lxd_options(settings))
    return driver_of(_opening(at, record, installation_id, clock))


def open_record(
    at: Place, record: SiteRecord, installation_id: str, clock: Clock, keys: SiteKeys = NO_KEYS
) -> ComputeDriver:
    """Open one site without adding it to the server's engines."""
    return open_site(record.kind, _opening(at, record, installation_id, clock, keys))


def _add(
    engines: Engines, at: Place, record: SiteRecord, installation_id: str, clock: Clock, keys: SiteKeys
) -> None:
    driver = open_record(at, record, installation_id, clock, keys)
    engines.put(driver, record, for_all=record.options.get(OPEN) == "true")


def _opening(
    at: Place, record: SiteRecord, installation_id: str, clock: Clock, keys: SiteKeys = NO_KEYS
) -> Opening:
    folder = at.folder / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    options = {name: value for name, value in record.options.items() if name != OPEN}
    mark = engine_mark(installation_id)
    return Opening(
        name=record.name,
        options=options,
        folder=folder,
        mark=mark,
        clock=clock,
        account_secret=keys.account_secret,
        derive=keys.derive,
    )


def lxd_options(settings: Settings) -> Mapping[str, str]:
    given = {
        "socket": settings.lxd_socket,
        "pool_gb": settings.pool_gb,
        "pool_source": settings.pool_source,
        "guests_reach_out": settings.guests_reach_out,
        "guest_user_namespaces": settings.guest_user_namespaces,
        "guest_io_uring": settings.guest_io_uring,
        "guest_bpf": settings.guest_bpf,
        "guest_connections_per_second": settings.guest_connections_per_second,
        "guest_packets_per_second": settings.guest_packets_per_second,
        "guest_connections_max": settings.guest_connections_max,
        "mould_stock": settings.mould_stock,
    }
    return {name: str(value) for name, value in given.items()}


def _simulated_options(settings: Settings) -> Mapping[str, str]:
    return {
        "hosts": settings.simulated_hosts,
        "boot_seconds": str(settings.simulated_boot_seconds),
        "faults": settings.simulated_faults,
    }
