"""The configuration of HAProxy for the balancers of one project, and what its statistics say. Pure.

Tenants choose names, paths and certificates. Names never get into the text: sections and servers are called by our ids.
Every other value is checked here once more, so that a value that slipped through cannot add a directive.
"""

import re
from collections.abc import Iterable, Iterator
from ipaddress import IPv4Address
from typing import Final

from teraflock.network.balancer.model import (
    HTTP_CHECK,
    TCP_CHECK,
    BackendSeen,
    BackendSpec,
    BackendState,
    BalancerId,
    BalancerProtocol,
    BalancerSeen,
    BalancerSpec,
)
from teraflock.network.balancer.rules import PATH
from teraflock.network.ipv6 import six

CONNECTIONS_MAX: Final = 2000
"""Of one project at once. Each needs two files and some 40 KB."""
OLD_SECONDS_MAX: Final = 3600
"""How long a connection may outlive a change."""
_ID: Final = re.compile(r"[a-z]{3}_[0-9a-z]{1,40}")
_GLOBAL: Final = f"""global
  maxconn {CONNECTIONS_MAX}
  nbthread 1
  hard-stop-after {OLD_SECONDS_MAX}s
  stats socket /cell/run/admin.sock mode 600 level admin expose-fd listeners
  server-state-file /cell/state
  ssl-default-bind-options ssl-min-ver TLSv1.2 no-tls-tickets
  tune.ssl.default-dh-param 2048

defaults
  load-server-state-from-file global
  timeout connect 3s
  timeout queue 10s
  timeout http-request 15s
  timeout http-keep-alive 60s
  timeout client 1h
  timeout server 1h
  timeout tunnel 1h
  timeout client-fin 30s
  timeout server-fin 30s
  option redispatch 1
  retries 3
"""


def configuration(balancers: Iterable[BalancerSpec], *, with_ipv6: bool = True) -> str:
    """`with_ipv6`: balancers also listen on their IPv6 addresses. Backends are reached with IPv4."""
    return "\n".join((_GLOBAL, *("\n".join(_section(each, with_ipv6)) + "\n" for each in balancers)))


def _section(spec: BalancerSpec, with_ipv6: bool) -> Iterator[str]:
    address = IPv4Address(spec.address)
    tls = f" ssl crt /cell/certificates/{word(spec.id)}.pem" if spec.certificate else ""
    is_http = BalancerProtocol(spec.protocol) == BalancerProtocol.HTTP
    alpn = " alpn h2,http/1.1" if tls and is_http else ""
    yield f"listen {word(spec.id)}"
    yield f"  bind {address}:{int(spec.port)}{tls}{alpn}"
    if with_ipv6:
        yield f"  bind [{six(str(address))}]:{int(spec.port)}{tls}{alpn}"
    yield f"  mode {'http' if is_http else 'tcp'}"
    yield f"  source {address}"
    yield "  balance leastconn"
    if is_http:
        yield "  option forwardfor"
        yield f"  http-request set-header X-Forwarded-Proto {'https' if tls else 'http'}"
        yield "  retry-on conn-failure empty-response"
    yield from _check(spec)
    # Half of the time until the next check, an eighth for each of two checks that fail, and some to spare.
    eighth = int(spec.check_seconds) * 1000 // 8
    yield f"  timeout check {eighth}ms"
    yield f"  default-server check inter {eighth * 4}ms fastinter {eighth}ms fall 2 rise 2"
    yield from (_server(each, spec.target_port) for each in spec.backends)


def _check(spec: BalancerSpec) -> Iterator[str]:
    if spec.health_check == TCP_CHECK:
        return
    path = spec.health_check.removeprefix(HTTP_CHECK)
    if not (spec.health_check.startswith(HTTP_CHECK) and PATH.fullmatch(path)):
        raise ValueError(f"invalid health check: {spec.health_check!r}")
    yield "  option httpchk"
    yield f"  http-check send meth GET uri {path} ver HTTP/1.1 hdr Host {IPv4Address(spec.address)}"
    yield "  http-check expect status 200-399"


def _server(backend: BackendSpec, port: int) -> str:
    return f"  server {word(backend.instance_id)} {IPv4Address(backend.address)}:{int(port)}"


def word(id: str) -> str:
    if not _ID.fullmatch(id):
        raise ValueError(f"invalid id: {id!r}")
    return id


_STATES: Final = {"UP": BackendState.UP, "DOWN": BackendState.DOWN, "MAINT": BackendState.DOWN}
_REASONS: Final = {
    "L4CON": "connection refused or unreachable",
    "L4TOUT": "no connection in time",
    "L7TOUT": "no answer in time",
    "L7STS": "the check got an error status",
    "L7RSP": "the check got no HTTP response",
}


def seen(statistics: str) -> tuple[BalancerSeen, ...]:
    """Parse the output of `show stat`."""
    head, _, body = statistics.removeprefix("# ").partition("\n")
    names = head.strip().rstrip(",").split(",")
    fronts: dict[str, dict[str, str]] = {}
    backends: dict[str, list[BackendSeen]] = {}
    for line in filter(None, map(str.strip, body.splitlines())):
        row = dict(zip(names, line.split(","), strict=False))
        server, section = row.get("svname", "BACKEND"), row.get("pxname", "")
        if server == "FRONTEND":
            fronts[section] = row
        elif server != "BACKEND":
            backends.setdefault(section, []).append(_backend(row))
    return tuple(
        BalancerSeen(
            id=BalancerId(id),
            sessions=_number(row, "scur"),
            sessions_total=_number(row, "stot"),
            bytes_in=_number(row, "bin"),
            bytes_out=_number(row, "bout"),
            backends=tuple(backends.get(id, ())),
        )
        for id, row in fronts.items()
    )


def _backend(row: dict[str, str]) -> BackendSeen:
    """`UP 1/2` and `DOWN 1/2` are on the way to the other state."""
    status, checked = row.get("status", ""), row.get("check_status", "")
    state = _STATES.get(status.partition(" ")[0], BackendState.UNKNOWN)
    if checked in ("", "INI") and state == BackendState.UP:
        state = BackendState.UNKNOWN
    code = checked.lstrip("* ")
    reason = _REASONS.get(code, "the check failed") if state == BackendState.DOWN else ""
    return BackendSeen(
        instance_id=row["svname"],
        state=state,
        reason=reason,
        sessions=_number(row, "scur"),
        sessions_total=_number(row, "stot"),
        bytes_in=_number(row, "bin"),
        bytes_out=_number(row, "bout"),
    )


def _number(row: dict[str, str], name: str) -> int:
    text = row.get(name, "")
    return int(text) if text.isdigit() else 0
