"""Builds the values that drivers get from the row of an instance. Pure."""

from teraflock.base.filling import filled
from teraflock.dataset.model import FOLDER
from teraflock.fleet.model import Host, HostKind
from teraflock.instance.driver import GpuSlot, Handle, Machine, Network, Nic, Port, Rental
from teraflock.instance.model import SSH_PORT, Instance, NetworkSpec, Operation
from teraflock.network.model import DEFAULT
from teraflock.network.rules import gateway, number_of, subnet
from teraflock.tenant.model import ProjectId


def network_of(
    project: ProjectId, number: int, project_name: str = "", *, key: str = "", name: str = ""
) -> Network:
    """The names of the project and the network become parts of its guests' host names."""
    return Network(
        project_id=project,
        number=number,
        subnet=str(subnet(number)),
        gateway=str(gateway(number)),
        domain=f"{project_name}.internal" if project_name else "",
        id="" if key == project else key,
        name=name,
    )


def nics_of(instance: Instance, project_name: str) -> tuple[Nic, ...]:
    """The interfaces of an instance. Empty on a rented machine, which is in no network of ours."""
    project, addresses = instance.project_id, (instance.address, *instance.more_addresses)
    networks = instance.spec.networks or (NetworkSpec(DEFAULT, project),)
    return tuple(
        Nic(network_of(project, number_of(address), project_name, key=each.key, name=each.name), address)
        for address, each in zip(addresses, networks, strict=False)
        if address is not None
    )


def no_network(project: ProjectId) -> Network:
    """For a rented machine."""
    return Network(project_id=project, number=-1, subnet="", gateway="")


def handle_of(instance: Instance, host: Host | None) -> Handle:
    """The handle with which drivers find an instance. A site that chooses hosts itself gets no host."""
    if host is None:
        return Handle(instance.id, "")
    if host.kind == HostKind.RENTED:  # its address and its key are recorded together
        return Handle(instance.id, "", host.remote_id, instance.host_key if host.address else "")
    return Handle(instance.id, host.name)


def token_of(instance: Instance) -> str:
    """The launch token: the same for every attempt of a launch at one place, and different for all others."""
    return f"{instance.id}.{instance.generation}.{instance.candidate}"


def rental_of(instance: Instance, host: Host) -> Rental | None:
    wanted = instance.spec.rental
    if wanted is None:
        return None
    token = token_of(instance)
    return filled(
        Rental,
        wanted,
        region=host.region,
        mode=instance.spec.mode,
        token=token,
        asked_at=host.token_at if host.token == token else None,
    )


def _ports(instance: Instance) -> tuple[Port, ...]:
    if instance.spec.rental is not None:
        return (Port(0, SSH_PORT),)  # everything else goes through SSH
    return tuple(Port(port.host_port, port.guest_port) for port in instance.held.ports)


def _image_of(instance: Instance) -> str:
    """The image to create it from: its own, or a copy of its disk that its lost host left."""
    request = instance.request
    is_copy = request is not None and request.operation == Operation.LAUNCH and request.subject
    return request.subject if request and is_copy else instance.spec.image_id


def machine_of(instance: Instance, host: Host, project_name: str) -> Machine:
    """The machine as the current operation wants it. While a resize is undone, that is the machine before it."""
    shape, slots = instance.shape, {card.slot for card in instance.held.gpus}
    request, progress = instance.request, instance.progress
    resizing = progress is not None and progress.operation in (Operation.RESIZE, Operation.RESIZE_RESTART)
    if resizing and request and request.shape_before:
        undoing = progress is not None and progress.undoing
        shape = request.shape_before if undoing else shape
        slots = set(request.slots_before if undoing else request.slots_after)
    spec, nics = instance.spec, nics_of(instance, project_name)
    return filled(
        Machine,
        spec,
        handle=handle_of(instance, host),
        hostname=instance.name,
        image=_image_of(instance),
        vcpus=shape.vcpus,
        ram_bytes=shape.ram_bytes,
        disk_bytes=shape.disk_bytes,
        gpus=tuple(GpuSlot(card.slot, card.kind) for card in instance.held.gpus if card.slot in slots),
        network=nics[0].network if nics else no_network(instance.project_id),
        address=instance.address or "",
        more_nics=nics[1:],
        ports=_ports(instance),
        command_run=instance.command_run,
        environment={"TERA_DATA": FOLDER, **spec.environment} if spec.data else spec.environment,
        volumes=tuple(each for each in instance.volumes if each.host_id == host.id),
        rental=rental_of(instance, host),
    )
