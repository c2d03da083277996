"""Converters of load balancers."""

from teraflock.base.filling import filled
from teraflock.network.balancer.model import (
    BackendSeen,
    BackendState,
    BalancerOrder,
    BalancerSeen,
    ShownBalancer,
    Target,
)
from teraflock.network.naming import SUBDOMAIN
from teraflock.wire.balancer import BackendAnswer, BalancerAnswer, BalancerRequest


def balancer_order(body: BalancerRequest) -> BalancerOrder:
    return filled(BalancerOrder, body, health_check=body.check, published=body.published_port)


def balancer_answer(shown: ShownBalancer, *, asked: bool = False) -> BalancerAnswer:
    """`asked`: its host was asked what it reports."""
    each = shown.balancer
    seen = shown.seen or BalancerSeen(id=each.id)
    is_published = each.published is not None
    return filled(
        BalancerAnswer,
        each,
        dns_name=f"{each.name}.{SUBDOMAIN}.{shown.domain}",
        protocol=each.protocol.value,
        check=each.health_check,
        label=f"{each.label_key}={each.label_value}" if each.label_key else "",
        tls=bool(each.certificate),
        published_address=shown.host_address if is_published else "",
        published_port=each.published,
        running=shown.seen is not None if asked else None,
        sessions=seen.sessions,
        sessions_total=seen.sessions_total,
        bytes_in=seen.bytes_in,
        bytes_out=seen.bytes_out,
        backends=_backends(shown.targets, seen),
    )


def _backends(targets: tuple[Target, ...], seen: BalancerSeen) -> tuple[BackendAnswer, ...]:
    found = {each.instance_id: each for each in seen.backends}
    return tuple(_backend(each, found.get(each.instance_id)) for each in targets)


def _backend(target: Target, seen: BackendSeen | None) -> BackendAnswer:
    seen = seen or BackendSeen(instance_id=target.instance_id, state=BackendState.UNKNOWN)
    return filled(
        BackendAnswer, seen, instance=target.name, address=target.address or "", state=seen.state.value
    )
