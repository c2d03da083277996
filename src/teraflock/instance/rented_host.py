"""Writes the host of a rented machine: made for one instance, before the machine exists."""

from collections.abc import Callable, Sequence
from datetime import datetime

from msgspec.structs import replace

from teraflock.base.ids import new_id
from teraflock.base.size import Size
from teraflock.fleet.card import store as cards
from teraflock.fleet.model import Gpu, GpuKind, Host, HostCost, HostId, HostKind, HostState
from teraflock.fleet.rented import store as rented_hosts
from teraflock.instance.candidates import region_of, type_of
from teraflock.instance.claims import take
from teraflock.instance.driver import ComputeDriver, MachineType
from teraflock.instance.model import Instance
from teraflock.storage.database import Transaction


def with_rented_host(
    tx: Transaction,
    instance: Instance,
    driver: ComputeDriver,
    types: Sequence[MachineType],
    *,
    now: datetime,
    random_bytes: Callable[[int], bytes],
) -> Instance:
    """The instance with a new host of its own, at the place that it has selected. It holds the host's cards.

    `types` are those of the site.
    """
    machine = type_of(instance, types)
    host = _host(instance, driver, machine, now, random_bytes)
    rented_hosts.add_rented(tx, host)
    expect_cost(tx, instance, host.id, machine)
    cards.release_gpus(tx, instance.id)
    held = take(tx, instance.id, host.id, instance.shape, guest_ports=())
    return replace(instance, site=driver.site, host_id=host.id, held=held)


def expect_cost(tx: Transaction, instance: Instance, id: HostId, machine: MachineType | None) -> None:
    """Record what the machine will cost, so that spending limits count it from now on."""
    price = machine.prices.get(instance.spec.mode) if machine else None
    if machine is not None and price is not None:
        rented_hosts.set_cost(tx, id, HostCost(micros_per_hour=price, currency=machine.currency))


def _host(
    instance: Instance,
    driver: ComputeDriver,
    machine: MachineType | None,
    now: datetime,
    random_bytes: Callable[[int], bytes],
) -> Host:
    shape = instance.shape
    return Host(
        id=HostId(new_id("hst", now, random_bytes)),
        site=driver.site,
        name=instance.id,
        kind=HostKind.RENTED,
        state=HostState.READY,
        address="",
        vcpus=shape.vcpus,
        ram_bytes=shape.ram_bytes,
        disk_bytes=shape.disk_bytes,
        simulated=driver.simulated,
        region=region_of(instance),
        registered_at=now,
        seen_at=now,
        type=instance.spec.rental.type if instance.spec.rental else "",
        gpus=tuple(_card(shape, number, machine) for number in range(shape.gpus)),
    )


def _card(shape: Size, number: int, machine: MachineType | None) -> Gpu:
    return Gpu(
        slot=f"rented-{number}",
        kind=GpuKind.PHYSICAL,
        gpu=shape.gpu,
        name=shape.gpu,
        memory_bytes=machine.gpu_memory_bytes if machine else 0,
        healthy=True,
        instance_id=None,
    )
