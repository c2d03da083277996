"""Whether the server is well, and what Prometheus wants to know."""

from typing import Annotated, Any

from teraflock import __version__
from teraflock.api.call import Call
from teraflock.api.route import Routes, Scope
from teraflock.tenant.rules import Permission
from teraflock.wire.health import HealthAnswer

routes = Routes("health")


@routes.get("/v1/health", scope=Scope.PUBLIC)
def show_health(call: Call) -> HealthAnswer:
    """Whether the server answers and its database can be read."""
    call.services.check()
    reality = call.services.reality()
    return HealthAnswer(
        status="ok",
        version=__version__,
        engine="lxd" if reality == "real" else reality,
        simulated=reality != "real",
    )


@routes.get("/v1/openapi.json", scope=Scope.PUBLIC)
def show_openapi(call: Call) -> Annotated[bytes, dict[str, Any]]:
    """This document, for the version that answers."""
    return call.services.openapi()


@routes.get(
    "/metrics",
    scope=Scope.HOUSE,
    may=Permission.HOST_READ,
    media_type="text/plain; version=0.0.4; charset=utf-8",
)
def show_metrics(call: Call) -> bytes:
    """Figures for Prometheus.

    For operators, unless the setting `metrics_open` says otherwise.
    """
    return call.services.metrics.text()
