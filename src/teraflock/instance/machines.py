"""From an instance's row to what an engine is told about it. Pure."""

from teraflock.fleet.model import Host
from teraflock.instance.driver import GpuSlot, Handle, Machine, Network, Port
from teraflock.instance.model import Instance, Operation
from teraflock.network.rules import gateway, subnet
from teraflock.tenant.model import ProjectId


def network_of(project: ProjectId, number: int, name: str = "") -> Network:
    """`name`: the project's, for the names of its guests."""
    return Network(
        project_id=project,
        number=number,
        subnet=str(subnet(number)),
        gateway=str(gateway(number)),
        domain=f"{name}.internal" if name else "",
    )


def machine_of(instance: Instance, host_name: str, network: Network) -> Machine:
    """The machine as the operation under way wants it: while a resize is undone, as it was before."""
    shape, slots = instance.shape, {card.slot for card in instance.held.gpus}
    request, progress = instance.request, instance.progress
    resizing = progress is not None and progress.operation in (Operation.RESIZE, Operation.RESIZE_RESTART)
    if resizing and request and request.shape_before:
        undoing = progress is not None and progress.undoing
        shape = request.shape_before if undoing else shape
        slots = set(request.slots_before if undoing else request.slots_after)
    spec = instance.spec
    return Machine(
        handle=Handle(instance.id, host_name),
        hostname=instance.name,
        image=spec.image_id,
        vcpus=shape.vcpus,
        ram_bytes=shape.ram_bytes,
        disk_bytes=shape.disk_bytes,
        gpus=tuple(GpuSlot(card.slot, card.kind) for card in instance.held.gpus if card.slot in slots),
        network=network,
        address=instance.address or "",
        ports=tuple(Port(port.host_port, port.guest_port) for port in instance.held.ports),
        authorized_keys=spec.authorized_keys,
        command=spec.command,
        command_run=instance.command_run,
        jupyter_token=spec.jupyter_token,
        user_data=spec.user_data,
        environment=spec.environment,
    )


class Places:
    """Where hosts are, remembered: the site and name of a host never change."""

    def __init__(self) -> None:
        self._by_id: dict[str, tuple[str, str]] = {}

    def learn(self, host: Host) -> None:
        self._by_id[host.id] = (host.site, host.name)

    def of(self, host_id: str) -> tuple[str, str] | None:
        """The site and the name."""
        return self._by_id.get(host_id)
