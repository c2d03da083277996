"""What an LXD or Incus can do. Balancers need HAProxy on the host."""

from typing import Final

from teraflock.drivers.lxd import balancers
from teraflock.instance.driver import Capability

ALWAYS: Final = frozenset(
    {
        Capability.PLACEMENT,
        Capability.CREATE_STOPPED,
        Capability.LIVE_RESIZE,
        Capability.STOP,
        Capability.SNAPSHOTS,
        Capability.EXEC,
        Capability.FILES,
        Capability.IMAGES_FROM_INSTANCES,
        Capability.BUILDS,
        Capability.TRAFFIC,
        Capability.FIREWALL,
        Capability.SLICES,
        Capability.TELEMETRY,
        Capability.DATASETS,
        Capability.VOLUMES,
    }
)


def capabilities() -> frozenset[Capability]:
    return ALWAYS | {Capability.BALANCER} if balancers.program() else ALWAYS
