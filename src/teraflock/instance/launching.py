"""From an order to rows: quota, image, hosts, cards, addresses and ports in one transaction, or nothing at all."""

from collections.abc import Callable
from datetime import datetime

import msgspec

from teraflock.base.errors import BadInput, Conflict, unknown_name
from teraflock.base.ids import new_id
from teraflock.fleet.memory import FleetMemory
from teraflock.fleet.placement import Policy, Room
from teraflock.image import store as images
from teraflock.image.model import Image, ImageState
from teraflock.instance import store
from teraflock.instance.claims import check_quota, place, take
from teraflock.instance.model import Access, Instance, InstanceId, Shape, Spec
from teraflock.instance.naming import new_name, numbered
from teraflock.instance.orders import Order, ShapeWish, need_of, shape_of
from teraflock.instance.states import Phase, Wanted
from teraflock.network.rules import free_addresses
from teraflock.storage.database import Transaction
from teraflock.tenant.model import Actor, Project
from teraflock.tenant.project.service import with_network

SSH_PORT = 22
JUPYTER_PORT = 8888


def launch(
    tx: Transaction,
    actor: Actor,
    project: Project,
    order: Order,
    *,
    policy: Policy,
    memory: FleetMemory,
    now: datetime,
    random_bytes: Callable[[int], bytes],
) -> tuple[Instance, ...]:
    """Make the rows of an order, all or none. The project is claimed; hosts are locked last, as many want them."""
    image = _image(tx, project, order.image)
    shape = _shape(tx, memory, order.shape)
    check_quota(tx, project, shape, order.instances)
    names = _names(tx, project, order, random_bytes)
    project = with_network(tx, actor, project)
    addresses = free_addresses(project.network_number, store.taken_addresses(tx, project.id), order.instances)
    rooms = place(tx, policy, memory, need_of(shape), order.instances, only=order.host)
    made = []
    for name, address, room in zip(names, addresses, rooms, strict=True):
        blank = _blank(actor, project, order, image, shape, name, now, random_bytes)
        made.append(_set_aside(tx, blank, room, address, now, random_bytes))
    return tuple(made)


def _shape(tx: Transaction, memory: FleetMemory, wish: ShapeWish) -> Shape:
    try:
        return shape_of(wish, memory.kinds(tx))
    except BadInput:  # unless there are new hosts
        return shape_of(wish, memory.kinds(tx, fresh=True))


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
    shape: Shape,
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
        jupyter_token=random_bytes(24).hex() if order.access == Access.JUPYTER else "",
        image_id=image.id,
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
    guest_ports = (SSH_PORT, JUPYTER_PORT) if blank.access == Access.JUPYTER else (SSH_PORT,)
    held = take(tx, blank.id, room.host_id, blank.shape, guest_ports)
    instance = msgspec.structs.replace(blank, host_id=room.host_id, address=address, held=held)
    return store.insert(tx, instance, now=now, random_bytes=random_bytes)
