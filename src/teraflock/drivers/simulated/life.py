"""The state of a simulated guest at a moment, and how it changes. All pure.

Nothing happens in a world between two calls: each call first applies everything that became due.
"""

from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec

from teraflock.drivers.simulated import guest as inside
from teraflock.drivers.simulated.faults import Kind, error
from teraflock.drivers.simulated.model import Guest, SimulatedBalancer
from teraflock.drivers.simulated.runs import advanced
from teraflock.instance.driver import Seen, Sent, Sighting
from teraflock.instance.model import InstanceId

CONSOLE_BYTES_MAX: Final = 64 * 1024
NEVER: Final = datetime.max.replace(tzinfo=UTC)


def as_of(found: Guest, now: datetime) -> Guest | None:
    """Apply everything that is due by `now`. Return None if the guest was reclaimed."""
    if found.leaving_at is not None and found.leaving_at <= now:
        return None
    if found.running and found.fails_at is not None and found.fails_at <= now:
        found = msgspec.structs.replace(found, running=False)
    if found.running and found.up_at is not None and found.up_at <= now:
        found = _user_data_ended(found)
    if found.running and found.command_ends_at is not None and found.command_ends_at <= now:
        found = _command_ended(found)
    if found.running and found.disk.programs:
        found = advanced(found, now)
    return found


def started(found: Guest, began_at: datetime, up_at: datetime, fails_at: datetime | None) -> Guest:
    """Start a guest. If its image does not boot, it stops at once, but the engine reports success."""
    console = found.console + f"simulated guest {found.machine.hostname}: starts\n".encode()
    if not found.boots:
        console += b"simulated guest: init exited\n"
    return msgspec.structs.replace(
        found,
        running=found.boots,
        died=not found.boots,
        begins_at=began_at,
        up_at=up_at,
        fails_at=fails_at,
        command_ends_at=_command_ends_at(found, up_at),
        starts=found.starts + 1,
        sent_bytes=0,
        console=console[-CONSOLE_BYTES_MAX:],
    )


def at_rest(found: Guest) -> Guest:
    return msgspec.structs.replace(
        found, running=False, died=False, begins_at=None, up_at=None, fails_at=None, command_ends_at=None
    )


def sighting(found: Guest, now: datetime) -> Sighting:
    machine = found.machine
    return Sighting(
        instance_id=machine.handle.instance_id,
        host=machine.handle.host,
        seen=_seen(found, now),
        vcpus=machine.vcpus,
        ram_bytes=machine.ram_bytes,
        disk_bytes=machine.disk_bytes,
        slots=tuple(sorted(gpu.slot for gpu in machine.gpus)),
        leaving_at=found.leaving_at,
        started_at=found.begins_at if found.running else None,
    )


class Shown(msgspec.Struct, frozen=True):
    """The last listing, and when another one would differ from it."""

    guests: Sequence[Guest] = ()
    away: Collection[str] = ()
    at: datetime = NEVER
    until: datetime = NEVER
    sightings: Sequence[Sighting] = ()

    def is_still(self, guests: Sequence[Guest], away: Collection[str], now: datetime) -> bool:
        return self.at <= now < self.until and self.away == away and self.guests == guests


def next_change(guests: Iterable[Guest], now: datetime) -> datetime:
    """When the next sighting changes without a call of the engine."""
    times = (
        at for each in guests for at in (each.leaving_at, each.fails_at, each.command_ends_at, each.begins_at)
    )
    return min((at for at in times if at is not None and at > now), default=NEVER)


def sent(found: Guest) -> Sent:
    """Return the bytes that the guest has sent out of the host since its last start."""
    epoch = f"{found.born}.{found.starts}"
    return Sent(instance_id=found.machine.id, epoch=epoch, bytes=found.sent_bytes)


def sent_by_balancer(found: SimulatedBalancer) -> Sent:
    return Sent(instance_id=InstanceId(found.spec.id), epoch=found.epoch, bytes=found.sent_bytes)


def not_busy(found: Guest, now: datetime) -> None:
    if found.busy_until is not None and now < found.busy_until:
        raise error(Kind.BUSY)


def later(now: datetime, seconds: float) -> datetime:
    return now + timedelta(seconds=seconds)


def _seen(found: Guest, now: datetime) -> Seen:
    if not found.whole or (found.fails_at is not None and found.fails_at <= now):
        return Seen.BROKEN
    if not found.running:
        return Seen.STOPPED
    return Seen.PENDING if found.begins_at is not None and now < found.begins_at else Seen.RUNNING


def without_run(found: Guest) -> Guest:
    """Return a guest that runs its command again at the next start."""
    disk = msgspec.structs.replace(found.disk, command_exit=None, command_log=b"")
    return msgspec.structs.replace(at_rest(found), disk=disk)


def _user_data_ended(found: Guest) -> Guest:
    if not found.machine.user_data.startswith("#!") or found.disk.user_data_exit is not None:
        return found
    done = inside.run_script(found.machine, found.disk, found.machine.user_data)
    disk = msgspec.structs.replace(
        found.disk,
        files=found.disk.files if done.files is None else done.files,
        user_data_exit=done.exit_code,
        user_data_log=done.stdout + done.stderr,
        own_bytes=found.disk.own_bytes + done.written_bytes,
    )
    return msgspec.structs.replace(found, disk=disk, sent_bytes=found.sent_bytes + done.sent_bytes)


def _command_ends_at(found: Guest, up_at: datetime) -> datetime | None:
    if not found.machine.command or found.disk.command_exit is not None:
        return None
    done = inside.execute(found.machine, found.disk, found.machine.command, b"")
    return later(up_at, done.seconds)


def _command_ended(found: Guest) -> Guest:
    done = inside.execute(found.machine, found.disk, found.machine.command, b"")
    disk = msgspec.structs.replace(
        found.disk,
        files=found.disk.files if done.files is None else done.files,
        command_exit=done.exit_code,
        command_log=done.stdout + done.stderr,
        own_bytes=found.disk.own_bytes + done.written_bytes,
    )
    return msgspec.structs.replace(
        found, disk=disk, command_ends_at=None, sent_bytes=found.sent_bytes + done.sent_bytes
    )
