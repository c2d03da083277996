"""Turns an order into rows: quota, image, hosts, cards, addresses and ports, in one transaction or not at all."""

from collections.abc import Callable, Sequence, Set
from contextlib import suppress
from datetime import datetime

import msgspec
from msgspec.structs import replace

from teraflock.base.errors import BadInput, Conflict, unknown_name
from teraflock.base.ids import new_id
from teraflock.base.size import Size
from teraflock.fleet.memory import FleetMemory
from teraflock.fleet.model import Gpu, GpuKind, Host, HostCost, HostId, HostKind, HostState
from teraflock.fleet.placement import Policy, Room
from teraflock.fleet.rented import store as rented_hosts
from teraflock.image import store as images
from teraflock.image.model import Image, ImageState
from teraflock.instance import store
from teraflock.instance.account import store as accounts
from teraflock.instance.across import store as across
from teraflock.instance.claims import NoCapacity, check_quota, place, take
from teraflock.instance.driver import Capability, ComputeDriver, MachineType
from teraflock.instance.engines import Engines
from teraflock.instance.model import (
    Access,
    Instance,
    InstanceId,
    NetworkSpec,
    RentalSpec,
    RestartPolicy,
    Spec,
    guest_ports,
)
from teraflock.instance.naming import new_name, numbered
from teraflock.instance.orders import Order, ShapeWish, shape_of
from teraflock.instance.providing import own_first
from teraflock.instance.renting import choose
from teraflock.instance.site import store as sites
from teraflock.instance.site.rules import removed
from teraflock.instance.states import Phase, Wanted
from teraflock.network.interfaces import InterfaceWish, interfaces
from teraflock.network.model import Interface
from teraflock.network.security_group import store as security_groups
from teraflock.network.security_group.service import join_at_launch
from teraflock.network.service import layouts_to_launch
from teraflock.storage.database import Transaction
from teraflock.tenant.model import Actor, Project


class _Launch(msgspec.Struct, frozen=True, kw_only=True):
    """What all instances of one order have in common."""

    actor: Actor
    project: Project
    order: Order
    image: Image
    now: datetime
    random_bytes: Callable[[int], bytes]


def launch(
    tx: Transaction,
    actor: Actor,
    project: Project,
    order: Order,
    *,
    engines: Engines,
    types: Sequence[MachineType],
    policy: Policy,
    memory: FleetMemory,
    now: datetime,
    random_bytes: Callable[[int], bytes],
) -> tuple[Instance, ...]:
    """Write the rows of an order, all or none. The caller has claimed the project. Hosts are locked last, because many
    launches want them."""
    if order.burst and (own := own_first(order, types)):
        with suppress(NoCapacity, BadInput):  # no host has room for it
            return launch(
                tx, actor, project, own, engines=engines, types=(), policy=policy, memory=memory, now=now,
                random_bytes=random_bytes,
            )  # fmt: skip
    image = _image(tx, project, order.image)
    new = _Launch(actor=actor, project=project, order=order, image=image, now=now, random_bytes=random_bytes)
    if order.site:
        check_site(tx, engines, project, order)
    if order.site and not engines.can(order.site, Capability.PLACEMENT):
        return _launch_rented(tx, new, engines.at(order.site), types)
    return _launch_on_own_hosts(tx, new, policy, memory)


def _launch_on_own_hosts(
    tx: Transaction, new: _Launch, policy: Policy, memory: FleetMemory
) -> tuple[Instance, ...]:
    order = new.order
    if order.mode == "bid":
        raise BadInput("Own hosts do not accept bids", hint="`--mode spot` is cheaper than on-demand there")
    site = _site_of_image(tx, new.image, order.site)
    shape = _shape(tx, memory, order.shape)
    check_quota(tx, new.project, shape, order.instances)
    names = _names(tx, new.project, order, new.random_bytes)
    places = _interfaces(tx, new)
    groups = join_at_launch(tx, new.project, order.security_groups)
    rooms = place(tx, policy, memory, shape, order.instances, only=order.host, site=site)
    made = tuple(
        _set_aside(tx, _connected(_blank(new, shape, name), each), room, new.now, new.random_bytes)
        for name, each, room in zip(names, places, rooms, strict=True)
    )
    for group in groups:
        security_groups.join(tx, group, [instance.id for instance in made])
    return made


def _interfaces(tx: Transaction, new: _Launch) -> list[tuple[Interface, ...]]:
    """The interfaces of each instance. A network `default` that does not exist yet is created."""
    order, project = new.order, new.project
    wish = InterfaceWish(networks=order.networks, subnets=order.subnets, addresses=order.addresses)
    layouts = layouts_to_launch(
        tx, new.actor, project, new.now, new.random_bytes, with_default=wish.uses_default
    )
    return interfaces(wish, layouts, store.taken_addresses(tx, project.id), order.instances)


def _connected(blank: Instance, places: tuple[Interface, ...]) -> Instance:
    networks = tuple(NetworkSpec(each.network.name, each.network.engine_key) for each in places)
    first, *more = (each.address for each in places)
    return replace(
        blank, address=first, more_addresses=tuple(more), spec=replace(blank.spec, networks=networks)
    )


def _shape(tx: Transaction, memory: FleetMemory, wish: ShapeWish) -> Size:
    try:
        return shape_of(wish, memory.kinds(tx))
    except BadInput:  # a new host may have it
        return shape_of(wish, memory.kinds(tx, fresh=True))


def check_site(tx: Transaction, engines: Engines, project: Project, order: Order) -> None:
    """Refuse an unknown site and a site that the project may not use with the same words."""
    site = order.site
    shared = accounts.names_for(tx, project.id)
    allowed = sites.names_for(tx, project.organisation_id) | shared | engines.for_all
    over = removed(engines.records, sites.records(tx))
    names = [
        each.site
        for each in engines
        if (each.site in allowed or Capability.PLACEMENT in each.capabilities) and each.site not in over
    ]
    if site not in names:
        raise unknown_name(
            "site",
            site,
            names,
            see="Leave `--site` out for own hosts. Ask the operator for access to other sites",
        )
    if order.type and engines.can(site, Capability.PLACEMENT):
        raise BadInput(
            f"The site `{site}` has own hosts and does not rent machines by type",
            hint="Ask for a shape: `--gpu MODEL --gpus N`, or `--shape NAME`",
        )
    if order.mode == "bid" and not engines.can(site, Capability.BIDS):
        raise BadInput(
            f"The site `{site}` does not accept bids", hint="Use `--mode spot` or `--mode on-demand`"
        )


def _site_of_image(tx: Transaction, image: Image, site: str) -> str:
    """The only site that has an image made from an instance; for other images, the site of the order."""
    source = "" if image.recipe else across.site_in_all_projects(tx, image.source_instance_id)
    if source and site and source != site:
        raise BadInput(
            f"The site `{site}` does not have the image `{image.name}`: it was made on `{source}`",
            hint="Use an image that is built from a recipe: `tera image list`",
        )
    return source or site


def _launch_rented(
    tx: Transaction, new: _Launch, driver: ComputeDriver, types: Sequence[MachineType]
) -> tuple[Instance, ...]:
    order, can = new.order, driver.capabilities
    if order.security_groups:
        raise BadInput(
            f"The site `{order.site}` does not support security groups",
            hint="Leave out `--security-group`, or use our own hosts",
        )
    if order.networks or order.subnets or order.addresses:
        raise BadInput(
            f"The site `{order.site}` rents machines, which are in no network of the project",
            hint="Leave out `--network`, `--subnet` and `--address`, or use our own hosts",
        )
    _site_of_image(tx, new.image, order.site)
    shape, rental = choose(order, types)
    if order.access == Access.COMMAND and Capability.EXEC not in can:
        raise BadInput(
            f"The site `{order.site}` cannot run a command and keep its exit code",
            hint="Leave `--command` out and use SSH, or give a script with `--user-data`",
        )
    if order.access == Access.JUPYTER and Capability.JUPYTER not in can:
        raise BadInput(
            f"The site `{order.site}` has no Jupyter",
            hint="Launch with SSH, start Jupyter there, and reach it with `tera ssh NAME -- -L 8888:localhost:8888`",
        )
    check_quota(tx, new.project, shape, order.instances)
    names = _names(tx, new.project, order, new.random_bytes)
    first = (rental.type, rental.regions[0])
    machine = next(each for each in types if (each.name, each.region) == first)
    made = []
    for name in names:
        blank = _blank(new, shape, name)
        rented = replace(blank, spec=_rented_spec(blank.spec, order, rental, can))
        made.append(_rent(tx, new, rented, driver, machine))
    return tuple(made)


def _rented_spec(spec: Spec, order: Order, rental: RentalSpec, can: Set[Capability]) -> Spec:
    return replace(
        spec,
        rental=rental,
        keeps_disk=Capability.STOP in can and (order.mode == "on-demand" or Capability.STOP_SPOT in can),
        watches_guest=Capability.EXEC in can,
        restart_policy=order.restart_policy or RestartPolicy.NEVER,
    )


def _rent(
    tx: Transaction, new: _Launch, blank: Instance, driver: ComputeDriver, machine: MachineType
) -> Instance:
    """Write an instance with its own host. The loops rent the machine."""
    host = _rented_host(new, blank, driver, machine)
    rented_hosts.add_rented(tx, host)
    price = machine.prices.get(blank.spec.mode)
    if price is not None:  # spending limits count it from now on
        rented_hosts.set_cost(tx, host.id, HostCost(micros_per_hour=price, currency=machine.currency))
    held = take(tx, blank.id, host.id, blank.shape, guest_ports=())
    instance = replace(blank, site=driver.site, host_id=host.id, held=held)
    return store.insert(tx, instance, now=new.now, random_bytes=new.random_bytes)


def _rented_host(new: _Launch, blank: Instance, driver: ComputeDriver, machine: MachineType) -> Host:
    shape = blank.shape
    return Host(
        id=HostId(new_id("hst", new.now, new.random_bytes)),
        site=driver.site,
        name=blank.id,
        kind=HostKind.RENTED,
        state=HostState.READY,
        address="",
        vcpus=shape.vcpus,
        ram_bytes=shape.ram_bytes,
        disk_bytes=shape.disk_bytes,
        simulated=driver.simulated,
        region=machine.region,
        registered_at=new.now,
        seen_at=new.now,
        type=machine.name,
        gpus=tuple(_rented_card(shape.gpu, number, machine.gpu_memory_bytes) for number in range(shape.gpus)),
    )


def _rented_card(gpu: str, number: int, memory_bytes: int) -> Gpu:
    return Gpu(
        slot=f"rented-{number}",
        kind=GpuKind.PHYSICAL,
        gpu=gpu,
        name=gpu,
        memory_bytes=memory_bytes,
        healthy=True,
        instance_id=None,
    )


def _image(tx: Transaction, project: Project, name: str) -> Image:
    image = images.find_to_use(tx, project.id, name)
    if image is None:
        see = "`tera image list` lists them, `tera image build` builds more"
        raise unknown_name("image", name, images.names(tx, project.id), see=see)
    if image.state != ImageState.READY:
        problem = f": {image.problem}" if image.problem else ""
        raise Conflict(
            f"The image `{image.name}` is {image.state}{problem}", hint="`tera image list` shows its state"
        )
    return image


def _names(
    tx: Transaction, project: Project, order: Order, random_bytes: Callable[[int], bytes]
) -> list[str]:
    if order.name is None:
        taken = store.taken_names(tx, project.id, "")
        names: list[str] = []
        for _ in range(order.instances):
            names.append(new_name(random_bytes, taken))
            taken.add(names[-1])
        return names
    names = numbered(order.name, order.instances)
    taken = store.taken_names(tx, project.id, order.name)
    for name in names:
        if name in taken:
            raise Conflict(
                f"The project already has an instance `{name}`",
                hint="Choose another name, or delete that one",
            )
    return names


def _blank(new: _Launch, shape: Size, name: str) -> Instance:
    """The instance before it has a host."""
    order = new.order
    return Instance(
        id=InstanceId(new_id("ins", new.now, new.random_bytes)),
        project_id=new.project.id,
        name=name,
        wanted=Wanted.RUNNING,
        wanted_at=new.now,
        phase=Phase.QUEUED,
        shape=shape,
        image=new.image.name,
        access=order.access,
        spec=_spec(order, new.image, new.random_bytes),
        labels=order.labels,
        created_at=new.now,
        created_by=new.actor.member_id,
        due_at=new.now,
    )


def _spec(order: Order, image: Image, random_bytes: Callable[[int], bytes]) -> Spec:
    return Spec(
        authorized_keys=order.authorized_keys,
        command=order.command,
        user_data=order.user_data,
        environment=order.environment,
        mode=order.mode,
        restart_policy=order.restart_policy or RestartPolicy.SAME_HOST,
        jupyter_token=random_bytes(24).hex() if order.access == Access.JUPYTER else "",
        image_id=image.id,
        recipe=image.recipe,
        time_limit_seconds=order.time_limit_seconds,
        delete_when_done=order.delete_when_done,
    )


def _set_aside(
    tx: Transaction,
    blank: Instance,
    room: Room,
    now: datetime,
    random_bytes: Callable[[int], bytes],
) -> Instance:
    held = take(tx, blank.id, room.host_id, blank.shape, guest_ports(blank.access))
    instance = replace(blank, site=room.site, host_id=room.host_id, held=held)
    return store.insert(tx, instance, now=now, random_bytes=random_bytes)
