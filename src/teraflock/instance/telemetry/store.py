"""SQL about the instances whose readings a project may see."""

from teraflock.fleet.model import HostId
from teraflock.instance.telemetry.model import Placed
from teraflock.storage.database import Transaction
from teraflock.tenant.model import ProjectId


def running(tx: Transaction, project: ProjectId, *, limit: int) -> tuple[Placed, ...]:
    """The running instances of a project, by name."""
    rows = tx.all(
        "SELECT id, name, host_id, vcpus, ram_bytes, disk_bytes FROM instance"
        " WHERE project_id = :project AND phase = 'running' ORDER BY name LIMIT :limit",
        project=project,
        limit=limit,
    )
    return tuple(
        Placed(id=id, name=name, host_id=HostId(host), vcpus=vcpus, ram_bytes=ram, disk_bytes=disk)
        for id, name, host, vcpus, ram, disk in rows
    )
