"""The metrics that are read from the database when Prometheus asks for them."""

from collections.abc import Callable
from datetime import timedelta
from typing import Final

from teraflock.api.card_metrics import readings_text
from teraflock.api.metrics import Metrics
from teraflock.base.clock import Clock
from teraflock.fleet import store as fleet
from teraflock.fleet.model import DiskLimits, Host
from teraflock.fleet.telemetry import store as telemetry
from teraflock.instance.across import store as across
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


def add_database_metrics(metrics: Metrics, database: Database, clock: Clock) -> None:
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
