"""What every LXD or Incus can do. Balancers also need HAProxy on the host."""

from typing import Final

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
    }
)
