"""Turns an order into rows: quota, image, hosts, cards, addresses and ports, in one transaction or not at all."""

from collections.abc import Callable, Sequence
from datetime import datetime

import msgspec
from msgspec.structs import replace

from teraflock.base.errors import BadInput, Conflict, UnknownName, unknown_name
from teraflock.base.ids import new_id
from teraflock.base.size import Size
from teraflock.dataset.model import DatasetMount
from teraflock.dataset.service import mounts
from teraflock.fleet.memory import FleetMemory
from teraflock.fleet.placement import PlaceTerms, Policy
from teraflock.fleet.room import Room
from teraflock.image import store as images
from teraflock.image.model import Image, ImageState, shipped
from teraflock.image.recipe import known as recipe_names
from teraflock.image.recipe import serves_jupyter
from teraflock.instance import store
from teraflock.instance.across import store as across
from teraflock.instance.bid.model import ReadPrices, no_prices
from teraflock.instance.bid.terms import preemptible_on
from teraflock.instance.candidates import choice_of
from teraflock.instance.claims import NoCapacity, check_quota, place, take
from teraflock.instance.driver import Capability, ComputeDriver, MachineType
from teraflock.instance.engines import Engines
from teraflock.instance.model import (
    Access,
    Instance,
    InstanceId,
    NetworkSpec,
    Preemptible,
    RentalChoice,
    RentalSpec,
    RestartPolicy,
    Spec,
    guest_ports,
)
from teraflock.instance.naming import new_names, numbered
from teraflock.instance.orders import Order, ShapeWish, shape_of
from teraflock.instance.placing import terms_of
from teraflock.instance.providing import usable_sites
from teraflock.instance.queue import store as queue
from teraflock.instance.rented_host import with_rented_host
from teraflock.instance.renting import choose
from teraflock.instance.site import store as sites
from teraflock.instance.site.rules import removed
from teraflock.instance.states import Phase, Wanted
from teraflock.instance.volume.launch import attach_at_launch, volumes_to_launch
from teraflock.instance.volume.model import Volume, VolumeMount
from teraflock.network.interfaces import InterfaceWish, interfaces
from teraflock.network.model import Interface
from teraflock.network.security_group import store as security_groups
from teraflock.network.security_group.service import join_at_launch
from teraflock.network.service import layouts_to_launch
from teraflock.storage.database import Transaction
from teraflock.tenant.model import Actor, Project
from teraflock.tenant.ssh_key.rules import keys_of_launch
from teraflock.tenant.ssh_key.store import keys_of


class _Launch(msgspec.Struct, frozen=True, kw_only=True):
    """What all instances of one order have in common."""

    actor: Actor
    project: Project
    order: Order
    image: Image
    data: tuple[DatasetMount, ...] = ()
    now: datetime
    random_bytes: Callable[[int], bytes]
    read_prices: ReadPrices
    choices: tuple[RentalChoice, ...] = ()
    """All machines that may be rented, the ordered one first. Empty: only that one."""


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
    queued_id: str = "",
    choices: tuple[RentalChoice, ...] = (),
    read_prices: ReadPrices = no_prices,
) -> tuple[Instance, ...]:
    """Write the rows of an order, all or none. The caller has claimed the project. Hosts are locked last, because many
    launches want them. `queued_id` is the queued launch whose reserved hosts it may use."""
    rents = bool(order.site) and order.site in engines and not engines.can(order.site, Capability.PLACEMENT)
    image = _image(tx, project, order, rents=rents)
    data = mounts(tx, project, order.data)
    own = (each.public_key for each in keys_of(tx, actor.member_id))
    order = replace(order, authorized_keys=keys_of_launch(order.authorized_keys, own))
    new = _Launch(
        actor=actor,
        project=project,
        order=order,
        image=image,
        data=data,
        now=now,
        random_bytes=random_bytes,
        choices=choices,
        read_prices=read_prices,
    )
    if order.site:
        check_site(tx, engines, project, order)
    if rents:
        return _launch_rented(tx, new, engines.at(order.site), types)
    return _launch_on_own_hosts(tx, new, policy, memory, queued_id)


def on_own_hosts(
    tx: Transaction, memory: FleetMemory, project: Project, order: Order
) -> tuple[Size, PlaceTerms]:
    """What an order needs of own hosts, and on which terms. Locks nothing."""
    image = _usable(tx, project, order.image, images.find(tx, project.id, order.image))
    site = _site_of_image(tx, image, order.site)
    return _shape(tx, memory, order.shape), terms_of(tx, project.id, order, site=site)


def _launch_on_own_hosts(
    tx: Transaction, new: _Launch, policy: Policy, memory: FleetMemory, queued_id: str
) -> tuple[Instance, ...]:
    order = new.order
    site = _site_of_image(tx, new.image, order.site)
    shape = _shape(tx, memory, order.shape)
    check_quota(tx, new.project, shape, order.instances)
    names = _names(tx, new.project, order, new.random_bytes)
    places = _interfaces(tx, new)
    groups = join_at_launch(tx, new.project, order.security_groups)
    volumes = volumes_to_launch(tx, new.project, order.volumes)
    terms = terms_of(tx, new.project.id, order, site=site, queued_id=queued_id)
    if order.queue and not queued_id and queue.is_any_waiting_in_all_projects(tx):
        raise NoCapacity("Other launches wait for room too: the queue decides which of them is next")
    rooms = place(tx, policy, memory, shape, order.instances, terms)
    hows = _preemptible(tx, new, policy, shape, rooms)
    made = tuple(
        _set_aside(
            tx, _connected(_blank(new, shape, name, how), each), room, volumes, new.now, new.random_bytes
        )
        for name, each, room, how in zip(names, places, rooms, hows, strict=True)
    )
    attach_at_launch(tx, volumes, made)
    for group in groups:
        security_groups.join(tx, group, [instance.id for instance in made])
    return made


def _preemptible(
    tx: Transaction, new: _Launch, policy: Policy, shape: Size, rooms: Sequence[Room]
) -> Sequence[Preemptible | None]:
    """How each instance gives way to others on its host."""
    if new.order.mode == "on-demand":
        return [None] * len(rooms)
    return preemptible_on(tx, policy, new.order, new.read_prices(tx, new.now), shape, rooms)


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
    allowed = usable_sites(tx, engines, project)
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
    accepts_bids = engines.can(site, Capability.BIDS) or engines.can(site, Capability.PLACEMENT)
    if order.mode == "bid" and not accepts_bids:
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
            hint="Leave out `--security-group`, or launch without `--site` and `--provider`",
        )
    if order.graphics:
        raise BadInput(
            f"The site `{order.site}` rents machines, whose drivers come with them",
            hint="Leave out `--graphics`",
        )
    if order.volumes:
        raise BadInput(
            f"The site `{order.site}` has no volumes", hint="Launch without `--site` and `--provider`"
        )
    if order.networks or order.subnets or order.addresses:
        raise BadInput(
            f"The site `{order.site}` rents machines, which are in no network of the project",
            hint="Leave out `--network`, `--subnet` and `--address`, or launch without `--site` and `--provider`",
        )
    if new.data and not order.copies_data:
        raise BadInput(
            f"The site `{order.site}` rents machines, which do not share data",
            hint="Use `tera run --data`, which copies it there, or launch without `--site` and `--provider`",
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
            hint="Launch with SSH, start Jupyter there, and reach it with `tera ssh NAME -L 8888:localhost:8888`",
        )
    check_quota(tx, new.project, shape, order.instances)
    names = _names(tx, new.project, order, new.random_bytes)
    chosen = choice_of(order, shape, rental, driver)
    made = []
    for name in names:
        blank = _blank(new, shape, name)
        spec = _rented_spec(blank.spec, order, replace(rental, choices=new.choices), chosen)
        made.append(_rent(tx, new, replace(blank, spec=spec), driver, types))
    return tuple(made)


def _rented_spec(spec: Spec, order: Order, rental: RentalSpec, chosen: RentalChoice) -> Spec:
    return replace(
        spec,
        data=(),
        rental=rental,
        keeps_disk=chosen.keeps_disk,
        watches_guest=chosen.watches_guest,
        restart_policy=order.restart_policy or _restarts(order, rental),
    )


def _restarts(order: Order, rental: RentalSpec) -> RestartPolicy:
    """The default: only who names other machines for one that can be taken back expects to pay for another one."""
    return RestartPolicy.ELSEWHERE if rental.choices and order.mode != "on-demand" else RestartPolicy.NEVER


def _rent(
    tx: Transaction, new: _Launch, blank: Instance, driver: ComputeDriver, types: Sequence[MachineType]
) -> Instance:
    """Write an instance with its own host. The loops rent the machine."""
    at = replace(blank, site=driver.site)
    instance = with_rented_host(tx, at, driver, types, now=new.now, random_bytes=new.random_bytes)
    return store.insert(tx, instance, now=new.now, random_bytes=new.random_bytes)


def _image(tx: Transaction, project: Project, order: Order, *, rents: bool) -> Image:
    image = _image_named(tx, project, order.image, rents=rents)
    if order.access == Access.JUPYTER and image.recipe and not serves_jupyter(image.recipe):
        raise BadInput(
            f"The image `{image.name}` has no Jupyter",
            hint="Use `--image jupyter`, `pytorch` or `tensorflow`, or leave out `--access jupyter`",
        )
    return image


def _image_named(tx: Transaction, project: Project, name: str, *, rents: bool) -> Image:
    found = images.find_to_use(tx, project.id, name)
    if rents and found is None and name in recipe_names():
        return shipped(name)
    if rents and found is not None and found.recipe and found.state != ImageState.DELETING:
        return found  # a rented machine installs the recipe itself: nothing has to be built here
    return _usable(tx, project, name, found)


def _usable(tx: Transaction, project: Project, name: str, image: Image | None) -> Image:
    if image is None:
        if name in recipe_names():
            raise UnknownName(
                f"The image `{name}` is not built yet", hint=f"Build it with `tera image build {name}`"
            )
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
        drawn: set[str] = set()
        while len(drawn) < order.instances:
            more = new_names(random_bytes, order.instances - len(drawn), drawn)
            drawn |= more - store.taken_names(tx, project.id, sorted(more))
        return sorted(drawn)
    names = numbered(order.name, order.instances)
    taken = store.taken_names(tx, project.id, names)
    for name in names:
        if name in taken:
            raise Conflict(
                f"The project already has an instance `{name}`",
                hint="Choose another name, or delete that one",
            )
    return names


def _blank(new: _Launch, shape: Size, name: str, preemptible: Preemptible | None = None) -> Instance:
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
        spec=_spec(order, new.image, new.data, new.random_bytes),
        preemptible=preemptible,
        labels=order.labels,
        created_at=new.now,
        created_by=new.actor.member_id,
        due_at=new.now,
    )


def _spec(
    order: Order, image: Image, data: tuple[DatasetMount, ...], random_bytes: Callable[[int], bytes]
) -> Spec:
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
        graphics=order.graphics,
        place=order.place,
        data=data,
    )


def _set_aside(
    tx: Transaction,
    blank: Instance,
    room: Room,
    volumes: Sequence[tuple[Volume, str]],
    now: datetime,
    random_bytes: Callable[[int], bytes],
) -> Instance:
    held = take(tx, blank.id, room.host_id, blank.shape, guest_ports(blank.access))
    mounts = tuple(VolumeMount(each.disk_id, path, room.host_id) for each, path in volumes)
    instance = replace(blank, site=room.site, host_id=room.host_id, held=held, volumes=mounts)
    return store.insert(tx, instance, now=now, random_bytes=random_bytes)
