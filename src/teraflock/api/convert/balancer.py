"""Converters of load balancers."""

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
    return BalancerOrder(
        name=body.name,
        port=body.port,
        target_port=body.target_port,
        instances=body.instances,
        label=body.label,
        protocol=body.protocol,
        health_check=body.check,
        check_seconds=body.check_seconds,
        certificate=body.certificate,
        key=body.key,
        publish=body.publish,
        published=body.published_port,
    )


def balancer_answer(shown: ShownBalancer, *, asked: bool = False) -> BalancerAnswer:
    """`asked`: its host was asked what it reports."""
    each = shown.balancer
    seen = shown.seen or BalancerSeen(id=each.id)
    is_published = each.published is not None
    return BalancerAnswer(
        id=each.id,
        name=each.name,
        address=each.address,
        dns_name=f"{each.name}.{SUBDOMAIN}.{shown.domain}",
        port=each.port,
        target_port=each.target_port,
        protocol=each.protocol.value,
        check=each.health_check,
        check_seconds=each.check_seconds,
        label=f"{each.label_key}={each.label_value}" if each.label_key else "",
        tls=bool(each.certificate),
        certificate_ends_at=each.certificate_ends_at,
        published_address=shown.host_address if is_published else "",
        published_port=each.published,
        ending=each.ending,
        running=shown.seen is not None if asked else None,
        sessions=seen.sessions,
        sessions_total=seen.sessions_total,
        bytes_in=seen.bytes_in,
        bytes_out=seen.bytes_out,
        backends=_backends(shown.targets, seen),
        created_at=each.created_at,
    )


def _backends(targets: tuple[Target, ...], seen: BalancerSeen) -> tuple[BackendAnswer, ...]:
    found = {each.instance_id: each for each in seen.backends}
    return tuple(_backend(each, found.get(each.instance_id)) for each in targets)


def _backend(target: Target, seen: BackendSeen | None) -> BackendAnswer:
    seen = seen or BackendSeen(instance_id=target.instance_id, state=BackendState.UNKNOWN)
    return BackendAnswer(
        instance=target.name,
        address=target.address or "",
        state=seen.state.value,
        reason=seen.reason,
        sessions=seen.sessions,
        sessions_total=seen.sessions_total,
        bytes_in=seen.bytes_in,
        bytes_out=seen.bytes_out,
    )
