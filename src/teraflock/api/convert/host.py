"""Hosts on the wire."""

from teraflock.base.clock import at_microseconds
from teraflock.base.filling import filled
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
    return filled(
        HostAnswer,
        host,
        disk_limits=host.disk_limits.value,
        gpus=tuple(_gpu(card) for card in host.gpus),
        cost_micros_per_hour=host.cost.micros_per_hour if host.cost else None,
        cost_currency=host.cost.currency if host.cost else "",
    )


def invitation_answer(invited: Invited) -> InvitationAnswer:
    return InvitationAnswer(
        token=invited.token,
        server=invited.place.server,
        fingerprint=invited.place.fingerprint,
        expires_at=invited.expires_at,
    )


def host_removed_answer(losses: HostLosses) -> HostRemovedAnswer:
    return filled(HostRemovedAnswer, losses)


def _gpu(card: Gpu) -> HostGpuAnswer:
    return filled(HostGpuAnswer, card, free=card.instance_id is None)


def slicing_answer(view: SlicingView) -> SlicingAnswer:
    slicing = view.slicing
    return filled(SlicingAnswer, slicing, card=slicing.address, state=state_of(view))


def host_cost_answer(number: int, rate: CostRate, name: str) -> HostCostAnswer:
    return filled(
        HostCostAnswer,
        rate,
        number=number,
        host=name,
        starts_at=at_microseconds(rate.from_us),
        recorded_at=at_microseconds(rate.recorded_at_us),
    )


def capacity_answer(capacity: CardCapacity) -> CardCapacityAnswer:
    return filled(CardCapacityAnswer, capacity)
