"""Health, the OpenAPI document, and metrics for Prometheus."""

from typing import Annotated, Any

from teraflock import __version__
from teraflock.api.call import Call
from teraflock.api.route import Routes, Scope
from teraflock.tenant.rules import Permission
from teraflock.wire.health import HealthAnswer

routes = Routes("health", scope=Scope.PUBLIC)


@routes.get("/v1/health")
def show_health(call: Call) -> HealthAnswer:
    """Check that the server answers and can read its database."""
    call.services.check()
    reality = call.services.reality()
    return HealthAnswer(
        status="ok",
        version=__version__,
        engine="lxd" if reality == "real" else reality,
        simulated=reality != "real",
    )


@routes.get("/v1/openapi.json")
def show_openapi(call: Call) -> Annotated[bytes, dict[str, Any]]:
    """Get this document, for the version of the server."""
    return call.services.openapi()


@routes.get(
    "/metrics",
    scope=Scope.INSTALLATION,
    may=Permission.HOST_READ,
    media_type="text/plain; version=0.0.4; charset=utf-8",
)
def show_metrics(call: Call) -> bytes:
    """Get metrics for Prometheus.

    For operators only, unless the setting `metrics_open` is on.
    """
    return call.services.metrics.text()
