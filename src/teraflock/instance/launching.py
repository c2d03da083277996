"""From an order to rows: quota, image, hosts, cards, addresses and ports in one transaction, or nothing at all."""

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime

from msgspec.structs import replace

from teraflock.base.errors import BadInput, Conflict, unknown_name
from teraflock.base.ids import new_id
from teraflock.base.size import Size
from teraflock.fleet import store as fleet
from teraflock.fleet.memory import FleetMemory
from teraflock.fleet.model import Gpu, GpuKind, Host, HostCost, HostId, HostState
from teraflock.fleet.placement import Policy, Room
from teraflock.image import store as images
from teraflock.image.model import Image, ImageState
from teraflock.instance import store
from teraflock.instance.account import store as accounts
from teraflock.instance.claims import NoCapacity, check_quota, place, take, take_cards
from teraflock.instance.driver import Capability, ComputeDriver
from teraflock.instance.engines import Engines
from teraflock.instance.model import (
    Access,
    Held,
    Instance,
    InstanceId,
    RestartPolicy,
    Spec,
    guest_ports,
)
from teraflock.instance.naming import new_name, numbered
from teraflock.instance.orders import Order, ShapeWish, shape_of
from teraflock.instance.providing import at_provider, own_first
from teraflock.instance.renting import choose
from teraflock.instance.site import store as sites
from teraflock.instance.site.rules import removed
from teraflock.instance.states import Phase, Wanted
from teraflock.network.rules import free_addresses
from teraflock.storage.database import Transaction
from teraflock.tenant.model import Actor, Project
from teraflock.tenant.project.service import with_network


def launch(
    tx: Transaction,
    actor: Actor,
    project: Project,
    order: Order,
    *,
    engines: Engines,
    policy: Policy,
    memory: FleetMemory,
    now: datetime,
    random_bytes: Callable[[int], bytes],
) -> tuple[Instance, ...]:
    """Make the rows of an order, all or none. The project is claimed; hosts are locked last, as many want them."""
    if order.provider:
        order = at_provider(tx, engines, project, order)
    if order.burst and (own := own_first(order, engines.at(order.site).types())):
        with suppress(NoCapacity, BadInput):  # no host has room for it
            return launch(
                tx, actor, project, own,
                engines=engines, policy=policy, memory=memory, now=now, random_bytes=random_bytes,
            )  # fmt: skip
    image = _image(tx, project, order.image)
    if order.site:
        check_site(tx, engines, project, order)
    if order.site and not engines.can(order.site, Capability.PLACEMENT):
        return _launch_rented(tx, actor, project, order, image, engines, now, random_bytes)
    if order.mode == "bid":
        raise BadInput("Our own hosts take no bids", hint="`--mode spot` is cheaper than on-demand there")
    site = _site_of_image(tx, image, order.site)
    shape = _shape(tx, memory, order.shape)
    check_quota(tx, project, shape, order.instances)
    names = _names(tx, project, order, random_bytes)
    project = with_network(tx, actor, project)
    addresses = free_addresses(project.network_number, store.taken_addresses(tx, project.id), order.instances)
    rooms = place(tx, policy, memory, shape, order.instances, only=order.host, site=site)
    made = []
    for name, address, room in zip(names, addresses, rooms, strict=True):
        blank = _blank(actor, project, order, image, shape, name, now, random_bytes)
        made.append(_set_aside(tx, blank, room, address, now, random_bytes))
    return tuple(made)


def _shape(tx: Transaction, memory: FleetMemory, wish: ShapeWish) -> Size:
    try:
        return shape_of(wish, memory.kinds(tx))
    except BadInput:  # unless there are new hosts
        return shape_of(wish, memory.kinds(tx, fresh=True))


def check_site(tx: Transaction, engines: Engines, project: Project, order: Order) -> None:
    """Refuse a site that is not there and one that the project may not rent at in the same words."""
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
            "site", site, names, see="Leave `--site` out for our own hosts; the operator lets you use others"
        )
    if order.type and engines.can(site, Capability.PLACEMENT):
        raise BadInput(
            f"The site `{site}` has hosts of our own and rents out no machine types",
            hint="Ask for a shape: `--gpu MODEL --gpus N`, or `--shape NAME`",
        )
    if order.mode == "bid" and not engines.can(site, Capability.BIDS):
        raise BadInput(f"The site `{site}` takes no bids", hint="Use `--mode spot` or `--mode on-demand`")


def _site_of_image(tx: Transaction, image: Image, site: str) -> str:
    """The only site that has the image, where it was made from an instance; else the one that was asked for."""
    source = "" if image.recipe else store.site_in_all_projects(tx, image.source_instance_id)
    if source and site and source != site:
        raise BadInput(
            f"The site `{site}` does not have the image `{image.name}`: it was made on `{source}`",
            hint="Use an image that is built from a recipe: `tera image list`",
        )
    return source or site


def _launch_rented(
    tx: Transaction,
    actor: Actor,
    project: Project,
    order: Order,
    image: Image,
    engines: Engines,
    now: datetime,
    random_bytes: Callable[[int], bytes],
) -> tuple[Instance, ...]:
    driver = engines.at(order.site)
    _site_of_image(tx, image, order.site)
    shape, rental = choose(order, driver.types())
    can = driver.capabilities
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
    check_quota(tx, project, shape, order.instances)
    names = _names(tx, project, order, random_bytes)
    project = with_network(tx, actor, project)
    made = []
    for name in names:
        blank = _blank(actor, project, order, image, shape, name, now, random_bytes)
        policy = order.restart_policy or RestartPolicy.NEVER
        spec = replace(
            blank.spec,
            rental=rental,
            keeps_disk=Capability.STOP in can and (order.mode == "on-demand" or Capability.STOP_SPOT in can),
            watches_guest=Capability.EXEC in can,
            restart_policy=policy,
        )
        made.append(_rent(tx, replace(blank, spec=spec), driver, now, random_bytes))
    return tuple(made)


def _rent(
    tx: Transaction,
    blank: Instance,
    driver: ComputeDriver,
    now: datetime,
    random_bytes: Callable[[int], bytes],
) -> Instance:
    """Record an instance with a host of its own. The loops rent the machine."""
    shape, rental = blank.shape, blank.spec.rental
    assert rental is not None, "this is a rented instance"
    memory = {each.name: each.gpu_memory_bytes for each in driver.types()}.get(rental.type, 0)
    host = Host(
        id=HostId(new_id("hst", now, random_bytes)),
        site=driver.site,
        name=blank.id,
        state=HostState.READY,
        address="",
        vcpus=shape.vcpus,
        ram_bytes=shape.ram_bytes,
        disk_bytes=shape.disk_bytes,
        simulated=driver.simulated,
        region=rental.regions[0],
        registered_at=now,
        seen_at=now,
        type=rental.type,
        gpus=tuple(_rented_card(shape.gpu, number, memory) for number in range(shape.gpus)),
    )
    fleet.add_rented(tx, host)
    if (cost := _expected_cost(blank, driver)) is not None:  # spending limits count it from now on
        fleet.set_cost(tx, host.id, cost)
    held = Held(
        vcpus=shape.vcpus,
        ram_bytes=shape.ram_bytes,
        disk_bytes=shape.disk_bytes,
        gpus=take_cards(tx, blank.id, host.id, shape.gpu, shape.gpus),
    )
    instance = replace(blank, site=driver.site, host_id=host.id, held=held)
    return store.insert(tx, instance, now=now, random_bytes=random_bytes)


def _expected_cost(blank: Instance, driver: ComputeDriver) -> HostCost | None:
    rental = blank.spec.rental
    for each in driver.types() if rental else ():
        if rental and (each.name, each.region) == (rental.type, rental.regions[0]):
            price = each.prices.get(blank.spec.mode)
            return None if price is None else HostCost(micros_per_hour=price, currency=each.currency)
    return None


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
        see = "`tera image list` lists them, `tera image build` makes more"
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
                f"The project has an instance `{name}` already", hint="Take another name, or delete that one"
            )
    return names


def _blank(
    actor: Actor,
    project: Project,
    order: Order,
    image: Image,
    shape: Size,
    name: str,
    now: datetime,
    random_bytes: Callable[[int], bytes],
) -> Instance:
    spec = Spec(
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
    return Instance(
        id=InstanceId(new_id("ins", now, random_bytes)),
        project_id=project.id,
        name=name,
        wanted=Wanted.RUNNING,
        wanted_at=now,
        phase=Phase.QUEUED,
        shape=shape,
        image=image.name,
        access=order.access,
        spec=spec,
        labels=order.labels,
        created_at=now,
        created_by=actor.member_id,
        due_at=now,
    )


def _set_aside(
    tx: Transaction,
    blank: Instance,
    room: Room,
    address: str,
    now: datetime,
    random_bytes: Callable[[int], bytes],
) -> Instance:
    held = take(tx, blank.id, room.host_id, blank.shape, guest_ports(blank.access))
    instance = replace(blank, site=room.site, host_id=room.host_id, address=address, held=held)
    return store.insert(tx, instance, now=now, random_bytes=random_bytes)
