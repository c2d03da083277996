"""The metrics of a server. All are read when Prometheus asks for them."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Final

from teraflock.api.card_metrics import readings_text
from teraflock.api.metrics import Metrics
from teraflock.base.clock import Clock
from teraflock.base.errors import TeraflockError
from teraflock.bill.service import BillService
from teraflock.fleet import store as fleet
from teraflock.fleet.model import DiskLimits, Host
from teraflock.fleet.telemetry import store as telemetry
from teraflock.instance.across import store as across
from teraflock.instance.driver import Capability
from teraflock.instance.engines import Engines
from teraflock.network.balancer.model import BalancerSeen
from teraflock.network.balancer.rules import backends_up
from teraflock.storage.database import Database

READINGS_LAST: Final = timedelta(seconds=60)
"""Older readings are left out: a host that does not answer has none."""
_HOSTS: Final[tuple[tuple[str, str, Callable[[Host], float]], ...]] = (
    ("tera_host_disk_bytes", "Size of each host's disk pool", lambda host: host.disk_bytes),
    ("tera_host_disk_used_bytes", "Used bytes of each host's disk pool", lambda host: host.disk_used_bytes),
    (
        "tera_host_disk_limits_hold",
        "Whether each host enforces the disk limits of instances",
        lambda host: float(host.disk_limits is DiskLimits.HOLD),
    ),
)
BALANCER_METRICS: Final[tuple[tuple[str, str, Callable[[BalancerSeen], float]], ...]] = (
    ("tera_balancer_sessions", "Open connections of each balancer", lambda seen: seen.sessions),
    ("tera_balancer_bytes_in", "Bytes from clients since its last change", lambda seen: seen.bytes_in),
    ("tera_balancer_bytes_out", "Bytes to clients since its last change", lambda seen: seen.bytes_out),
    ("tera_balancer_backends_up", "Backends of each balancer that answer", backends_up),
)


def balancers_seen(engines: Engines, *sites: str) -> Iterator[BalancerSeen]:
    """What the balancers of all sites, or of these, report. A site that does not answer is left out."""
    for driver in engines:
        if Capability.BALANCER in driver.capabilities and (not sites or driver.site in sites):
            with suppress(TeraflockError):
                yield from driver.balancers()


def metrics_of(
    database: Database,
    clock: Clock,
    engines: Engines,
    turns: Callable[[], Mapping[str, int]],
    bills: Callable[[], BillService],
) -> Metrics:
    """`turns` counts the turns of each loop."""

    def of_balancers(value: Callable[[BalancerSeen], float]) -> dict[str, float]:
        return {each.id: value(each) for each in balancers_seen(engines)}

    metrics = Metrics()
    also = metrics.also
    also("tera_loop_turns", "Turns done by each loop", "loop", lambda: dict(turns()))
    per_hour = "Price per hour of everything in use, by currency"
    also("tera_cost_per_hour", per_hour, "currency", lambda: bills().cost_per_hour_in_all_projects())
    charged = "Charges so far, all projects, by currency"
    also("tera_charged", charged, "currency", lambda: bills().charged_in_all_projects())
    for name, sentence, value in BALANCER_METRICS:
        also(name, sentence, "balancer", partial(of_balancers, value))
    _add_database_metrics(metrics, database, clock)
    return metrics


def _add_database_metrics(metrics: Metrics, database: Database, clock: Clock) -> None:
    def by_phase() -> dict[str, float]:
        with database.read() as tx:
            return dict(across.count_by_phase_in_all_projects(tx))

    def by_host(value: Callable[[Host], float]) -> Callable[[], dict[str, float]]:
        return lambda: {host.name: value(host) for host in _hosts(database)}

    def readings() -> str:
        with database.read() as tx:
            found = telemetry.last_of_own_hosts(tx)
        oldest = clock.now() - READINGS_LAST
        return readings_text([each for each in found if each.reading.at >= oldest])

    metrics.also("tera_instances", "Instances by phase", "phase", by_phase)
    for name, sentence, value in _HOSTS:
        metrics.also(name, sentence, "host", by_host(value))
    metrics.also(
        "tera_writes_waiting", "Writes that are not in a transaction yet", "",
        lambda: {"": float(getattr(database, "works_waiting", 0))},
    )  # fmt: skip
    metrics.also_text(readings)


def _hosts(database: Database) -> tuple[Host, ...]:
    with database.read() as tx:
        return fleet.outlines(tx)
