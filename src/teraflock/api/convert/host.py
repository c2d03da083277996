"""Hosts on the wire."""

from teraflock.base.clock import at_microseconds
from teraflock.bill.margin.model import CostRate
from teraflock.fleet.fragmentation import CardCapacity
from teraflock.fleet.model import Gpu, Host
from teraflock.fleet.slicing.model import SlicingView
from teraflock.fleet.slicing.rules import state_of
from teraflock.instance.join.model import HostLosses, Invited
from teraflock.wire.host import (
    CardCapacityAnswer,
    HostAnswer,
    HostCostAnswer,
    HostGpuAnswer,
    HostRemovedAnswer,
    InvitationAnswer,
    SlicingAnswer,
)


def host_answer(host: Host) -> HostAnswer:
    return HostAnswer(
        id=host.id,
        site=host.site,
        name=host.name,
        state=host.state,
        address=host.address,
        vcpus=host.vcpus,
        ram_bytes=host.ram_bytes,
        disk_bytes=host.disk_bytes,
        disk_used_bytes=host.disk_used_bytes,
        disk_limits=host.disk_limits.value,
        allow_out=host.allow_out,
        vcpus_held=host.vcpus_held,
        ram_bytes_held=host.ram_bytes_held,
        disk_bytes_held=host.disk_bytes_held,
        gpus=tuple(_gpu(card) for card in host.gpus),
        simulated=host.simulated,
        region=host.region,
        labels=host.labels,
        drain_at=host.drain_at,
        seen_at=host.seen_at,
        kind=host.kind,
        type=host.type,
        zone=host.zone,
        remote_id=host.remote_id,
        cost_micros_per_hour=host.cost.micros_per_hour if host.cost else None,
        cost_currency=host.cost.currency if host.cost else "",
        gone_at=host.gone_at,
    )


def invitation_answer(invited: Invited) -> InvitationAnswer:
    return InvitationAnswer(
        token=invited.token,
        server=invited.place.server,
        fingerprint=invited.place.fingerprint,
        expires_at=invited.expires_at,
    )


def host_removed_answer(losses: HostLosses) -> HostRemovedAnswer:
    return HostRemovedAnswer(
        instances=losses.instances, volumes=losses.volumes, volumes_recovered=losses.volumes_recovered
    )


def _gpu(card: Gpu) -> HostGpuAnswer:
    return HostGpuAnswer(
        slot=card.slot,
        kind=card.kind,
        gpu=card.gpu,
        name=card.name,
        memory_bytes=card.memory_bytes,
        healthy=card.healthy,
        free=card.instance_id is None,
    )


def slicing_answer(view: SlicingView) -> SlicingAnswer:
    slicing = view.slicing
    return SlicingAnswer(
        card=slicing.address,
        gpu=slicing.gpu,
        profiles=slicing.profiles,
        state=state_of(view),
        problem=slicing.problem,
    )


def host_cost_answer(number: int, rate: CostRate, name: str) -> HostCostAnswer:
    return HostCostAnswer(
        number=number,
        host_id=rate.host_id,
        host=name,
        starts_at=at_microseconds(rate.from_us),
        micros_per_hour=rate.micros_per_hour,
        currency=rate.currency,
        recorded_at=at_microseconds(rate.recorded_at_us),
    )


def capacity_answer(capacity: CardCapacity) -> CardCapacityAnswer:
    return CardCapacityAnswer(
        gpu=capacity.gpu,
        cards=capacity.cards,
        free=capacity.free,
        broken=capacity.broken,
        largest=capacity.largest,
        fits=capacity.fits,
    )
