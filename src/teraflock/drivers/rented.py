"""Base class for drivers of clouds that rent out machines. A driver adds the API calls of one cloud.

Invariants:
- before it rents a machine, the driver asks the cloud whether the instance already has one (by its mark);
- before it rents another machine, it gives back any machine with an older launch token;
- a launch that may have succeeded is not repeated until `GRACE` has passed. Even a cloud that honours tokens, and would
  return the same machine, may not say since when it costs money; its listing does;
- `delete` gives back the named machine, or all machines of the instance. A machine that does not exist counts
  as deleted.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from typing import NoReturn

import msgspec

from teraflock.base.clock import Clock
from teraflock.base.errors import TeraflockError
from teraflock.base.filling import filled
from teraflock.dataset.model import DatasetCopy
from teraflock.fleet.model import HostReport
from teraflock.fleet.telemetry.model import HostReading
from teraflock.instance.driver import (
    GRACE,
    Capability,
    CommandState,
    Endpoint,
    GuestFile,
    Handle,
    Machine,
    MachineType,
    Made,
    Network,
    Ran,
    Readiness,
    Seen,
    Sent,
    Sighting,
)
from teraflock.instance.engine_errors import DoesNotBoot, EngineBusy, EngineMissing, EngineRefused
from teraflock.instance.model import InstanceId
from teraflock.instance.volume.model import VolumeMount, VolumeSeen
from teraflock.network.balancer.model import BalancerSeen, BalancerSpec
from teraflock.network.walls import Walls


class Remote(msgspec.Struct, frozen=True, kw_only=True):
    """A machine in the cloud's listing. Only machines with our mark matter."""

    remote_id: str
    instance_id: str
    """Read from the mark."""
    token: str
    """The launch token, read from the mark."""
    seen: Seen
    doing: str = ""
    """What the machine is waiting for, in the cloud's words."""
    zone: str = ""
    price_micros_per_hour: int | None = None
    currency: str = ""
    endpoints: Mapping[int, Endpoint] = {}
    """Endpoints by guest port, once they are known."""
    user: str = "root"
    host_key: str = ""
    started_at: datetime | None = None
    leaving_at: datetime | None = None
    since: datetime | None = None
    """From when on it costs money, if that is known."""
    is_spot: bool = False
    """The provider may take it back."""
    type: str = ""
    """The provider's name for the machine type, where the listing has it and no price."""


class RentedDriver(ABC):
    """Subclasses list what they support in `capabilities` and override the matching calls."""

    simulated = False
    patience = timedelta(minutes=10)
    capabilities: frozenset[Capability] = frozenset()
    types_at: datetime | None = None
    """When the provider last answered what can be rented. None: the types are not its own words."""

    def __init__(self, site: str, mark: str, clock: Clock) -> None:
        self.site = site
        self._mark = mark
        self._clock = clock
        self._missed: dict[str, datetime] = {}
        """When a listing first lacked a machine that was just rented, by its id."""

    # Calls that each driver implements

    @abstractmethod
    def types(self) -> Sequence[MachineType]: ...

    @abstractmethod
    def _machines(self) -> Iterable[Remote]:
        """List all machines with our mark, in every region. Raise `BadCredentials` if the account lacks
        access."""

    @abstractmethod
    def _rent(self, machine: Machine) -> Remote:
        """Launch a machine with our mark. Raise `NoRoom`, `OverQuota` or `NoMoney` when the cloud reports
        it."""

    @abstractmethod
    def _give_back(self, remote: Remote) -> None:
        """Terminate a machine. Succeed if it no longer exists."""

    # Calls that this class derives from them

    def boot_time_max(self, machine: Machine) -> timedelta:
        return timedelta(minutes=20)

    def hosts(self) -> Sequence[HostReport]:
        return ()

    def create(self, machine: Machine) -> Made:
        rental = machine.rental
        if rental is None:
            raise EngineRefused(f"The site `{self.site}` needs a machine type, and none was given")
        for found in self._of(machine.handle):
            if found.token == rental.token:
                return made_of(found)
            self._give_back(found)
        asked = rental.asked_at is not None and self._clock.now() - rental.asked_at < GRACE
        if asked:
            raise EngineBusy(
                f"The site `{self.site}` may have launched this machine already",
                hint="Teraflock checks again before it retries",
            )
        return made_of(self._rent(machine))

    def start(self, handle: Handle) -> None:
        """Do nothing: a rented machine starts by itself."""
        return

    def ready(self, machine: Machine) -> Readiness:
        found = self._seen(machine.handle)
        if found is None:
            if self._may_be_listed_later(machine):
                return Readiness(ready=False, doing="waiting for the machine to be listed")
            raise EngineMissing(f"The site `{self.site}` does not have this machine")
        self._missed.pop(machine.handle.remote_id, None)
        if found.seen in (Seen.BROKEN, Seen.STOPPED):
            raise self._broken(found)
        wanted = {port.guest_port for port in machine.ports}
        if found.seen == Seen.PENDING or not wanted <= found.endpoints.keys():
            return Readiness(ready=False, doing=found.doing)
        return Readiness(ready=True, host_key=found.host_key, endpoints=found.endpoints, user=found.user)

    def _may_be_listed_later(self, machine: Machine) -> bool:
        """Whether the launch, or the first listing without a machine that the cloud confirmed, is recent."""
        now, remote_id = self._clock.now(), machine.handle.remote_id
        missed_at = self._missed.setdefault(remote_id, now) if remote_id else None
        asked_at = machine.rental.asked_at if machine.rental else None
        return any(at is not None and now - at < GRACE for at in (asked_at, missed_at))

    def delete(self, handle: Handle) -> None:
        for found in self._of(handle):
            self._give_back(found)

    def look(self, handle: Handle) -> Sighting | None:
        found = self._seen(handle)
        return None if found is None else sighting_of(found)

    def sightings(self) -> Iterable[Sighting]:
        return [sighting_of(each) for each in self._machines()]

    def _seen(self, handle: Handle) -> Remote | None:
        """The machine of an instance. The listing may be a few seconds old."""
        return next(iter(self._of(handle)), None)

    def _broken(self, remote: Remote) -> TeraflockError:
        return DoesNotBoot("The rented machine did not start", hint="Launch another instance")

    def _of(self, handle: Handle) -> list[Remote]:
        """Return the named machine, or all machines of the instance."""
        found = [each for each in self._machines() if each.instance_id == handle.instance_id]
        return [each for each in found if handle.remote_id in ("", each.remote_id)]

    # Calls that need no action at these clouds

    def prepare(self, machine: Machine) -> None:
        return None

    def expose(self, machine: Machine) -> None:
        return None

    def hide(self, handle: Handle) -> None:
        return None

    def retire(self, network: Network) -> None:
        return None

    def enforce(self, walls: Walls) -> None:
        return None

    def balance(self, wanted: Sequence[BalancerSpec]) -> None:
        return None

    def balancers(self) -> Sequence[BalancerSeen]:
        return ()

    def volumes(self) -> Sequence[VolumeSeen]:
        return ()

    def datasets(self) -> Sequence[DatasetCopy]:
        return ()

    def delete_dataset(self, host: str, dataset_id: str) -> None:
        return None

    def delete_snapshot(self, handle: Handle, snapshot_id: str) -> None:
        return None

    def delete_image(self, image_id: str) -> None:
        return None

    def sent(self, handle: Handle) -> Sent | None:
        return None

    def all_sent(self) -> Iterable[Sent]:
        return ()

    def readings(self) -> Sequence[HostReading]:
        return ()

    def images(self) -> Mapping[str, int]:
        return {}

    def console(self, handle: Handle) -> bytes:
        return b""

    # Calls that need a capability

    def slice_card(self, host: str, address: str, profiles: tuple[str, ...]) -> None:
        self._lacks(Capability.SLICES)

    def create_volume(self, host: str, volume_id: str, size_bytes: int) -> None:
        self._lacks(Capability.VOLUMES)

    def attach_volume(self, host: str, instance_id: str, mount: VolumeMount) -> None:
        self._lacks(Capability.VOLUMES)

    def detach_volume(self, host: str, instance_id: str, volume_id: str) -> None:
        self._lacks(Capability.VOLUMES)

    def snapshot_volume(self, host: str, volume_id: str, snapshot_id: str) -> int:
        self._lacks(Capability.VOLUMES)

    def restore_volume(self, host: str, volume_id: str, snapshot_id: str) -> None:
        self._lacks(Capability.VOLUMES)

    def delete_volume_snapshot(self, host: str, volume_id: str, snapshot_id: str) -> None:
        self._lacks(Capability.VOLUMES)

    def delete_volume(self, host: str, volume_id: str) -> None:
        self._lacks(Capability.VOLUMES)

    def receive_dataset(self, host: str, dataset_id: str, offset: int, piece: bytes) -> None:
        self._lacks(Capability.DATASETS)

    def unpack_dataset(self, host: str, dataset_id: str, digest: str, size_bytes: int) -> None:
        self._lacks(Capability.DATASETS)

    def allow_out(self, host: str, networks: tuple[str, ...]) -> None:
        self._lacks(Capability.PLACEMENT)

    def stop(self, handle: Handle, *, force: bool) -> None:
        self._lacks(Capability.STOP)

    def resize(self, machine: Machine) -> None:
        self._lacks(Capability.LIVE_RESIZE)

    def run(self, handle: Handle, command: Sequence[str], *, stdin: bytes, seconds_max: float) -> Ran:
        self._lacks(Capability.EXEC)

    def command_state(self, handle: Handle) -> CommandState | None:
        self._lacks(Capability.EXEC)

    def user_data_state(self, handle: Handle) -> CommandState | None:
        return None

    def file(self, handle: Handle, path: str) -> AbstractContextManager[GuestFile]:
        self._lacks(Capability.FILES)

    def snapshot(self, handle: Handle, snapshot_id: str) -> int:
        self._lacks(Capability.SNAPSHOTS)

    def restore(self, handle: Handle, snapshot_id: str) -> None:
        self._lacks(Capability.SNAPSHOTS)

    def build_image(self, image_id: str, recipe: str) -> None:
        self._lacks(Capability.BUILDS)

    def publish(self, handle: Handle, image_id: str) -> None:
        self._lacks(Capability.IMAGES_FROM_INSTANCES)

    def _lacks(self, capability: Capability) -> NoReturn:
        raise EngineRefused(
            f"The site `{self.site}` does not support `{capability}`",
            hint="A driver that lists this capability must override the call",
        )


def made_of(remote: Remote) -> Made:
    return filled(Made, remote)


def sighting_of(remote: Remote) -> Sighting:
    return Sighting(
        instance_id=InstanceId(remote.instance_id),
        host="",
        seen=remote.seen,
        started_at=remote.started_at if remote.seen == Seen.RUNNING else None,
        leaving_at=remote.leaving_at,
        made=made_of(remote),
    )
