"""What a server measures: the values behind `/metrics`, read when somebody asks for them."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import Final

from teraflock.api.metrics import Metrics
from teraflock.app.server_metrics import add_database_metrics
from teraflock.base.clock import Clock
from teraflock.base.errors import TeraflockError
from teraflock.bill.service import BillService
from teraflock.instance.driver import Capability
from teraflock.instance.engines import Engines
from teraflock.network.balancer.model import BalancerSeen
from teraflock.network.balancer.rules import backends_up
from teraflock.storage.database import Database

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
    add_database_metrics(metrics, database, clock)
    return metrics
