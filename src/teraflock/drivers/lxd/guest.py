"""Converts a machine to the engine's configuration and back. Pure: the only module that knows the keys.

What the guest needs to know about itself is in `user.*` keys, from which the image's templates write its
files. Guests are unprivileged, cannot nest, and each has its own range of user ids (see `confinement.py`). No
raw LXC key is ever set. All other keys and all devices are ours. A fingerprint of them is stored, so that
manual changes are detected.
"""

import hashlib
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from teraflock.drivers.lxd import datasets, interfaces, names, nvidia
from teraflock.drivers.lxd.custom_volumes import volume_devices
from teraflock.drivers.lxd.names import Names
from teraflock.fleet.model import GpuKind
from teraflock.fleet.slicing.rules import address_of
from teraflock.host.slicing import SliceNode
from teraflock.instance.driver import GpuSlot, Machine, Port, Seen, Sighting
from teraflock.instance.model import InstanceId

PROCESSES_MAX: Final = 16_384
"""Enough for a training job with many data loaders, and far below what would overload the host."""

ID: Final = interfaces.ID
PORTS: Final = "user.teraflock.ports"
FINGERPRINT: Final = "user.teraflock.fingerprint"
KEPT: Final = "user.teraflock.kept"
"""Bytes that the newest snapshot added to those already kept. Each snapshot has its own value."""
DISK: Final = "user.disk-bytes"
"""For `df` in the guest: the file system reports the whole pool."""
HOST_KEY: Final = "user.host-key-public"
COMMAND: Final = "user.command"
COMMAND_RUN: Final = "user.teraflock.command-run"
"""Run number of the command for which the instance was last configured."""
USER_DATA: Final = "user.user-data"
ENVIRONMENT: Final = "user.environment"
_GPU: Final = "gpu"
_DRIVER: Final = "gpu-driver"
_SLICE: Final = "user.slice"
_NOT_SETTINGS: Final = ("user.", "volatile.", "image.")
_OLD_FILTERS: Final = {"security.mac_filtering": "true", "security.ipv4_filtering": "true"}
"""The engine's own filters, from before the firewall had a table for this."""
_SEEN: Final = {
    "Running": Seen.RUNNING,
    "Stopped": Seen.STOPPED,
    "Error": Seen.BROKEN,
    "Frozen": Seen.BROKEN,  # someone paused it manually: it does not answer
}


class HostKey(msgspec.Struct, frozen=True):
    private: str
    public: str


class GuestHost(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a guest's configuration that depend on its host."""

    confined: Mapping[str, str]
    """The keys that isolate the guest (see `confinement.py`)."""
    driver: str = ""
    """Folder with the libraries for GPUs; empty if the engine provides them."""
    slices: Mapping[str, tuple[SliceNode, ...]] = {}
    """The device nodes of the machine's slices, by UUID. Empty if the engine provides them."""
    server: str = "lxd"
    """The name that the engine reports: `lxd` or `incus`."""


def body(machine: Machine, ours: Names, key: HostKey, mould: str, host: GuestHost) -> dict[str, object]:
    """Return the request that creates the instance as a copy of its image's mould."""
    config = _identity(machine, ours, key) | settings(machine, ours, host)
    given = devices(machine, ours, host)
    return {
        "name": names.guest(machine.id),
        "type": "container",
        "source": {"type": "copy", "source": mould, "instance_only": True},
        "profiles": [],
        "config": config | {FINGERPRINT: fingerprint(config, given)},
        "devices": given,
    }


def settings(machine: Machine, ours: Names, host: GuestHost) -> dict[str, str]:
    """Return all keys except those that a guest, an image or the engine writes."""
    fixed = {"boot.autostart": "false"}  # after a reboot the server decides what runs, not the engine
    if ours.member:
        fixed["cluster.evacuate"] = "stop"  # the same for an evacuation: a guest belongs to its host
    given = _gpu_config(machine, host.driver)
    return {**fixed, **host.confined, **no_guest_socket(host.server), **limits(machine), **given}


def fingerprint(config: Mapping[str, str], devices: Mapping[str, Mapping[str, str]]) -> str:
    """Return a digest of everything that only we may change."""
    ours = {key: value for key, value in config.items() if not key.startswith(_NOT_SETTINGS)}
    return hashlib.sha256(msgspec.json.encode((ours, devices), order="sorted")).hexdigest()[:16]


def no_guest_socket(server: str) -> dict[str, str]:
    """Close the socket on which a guest can query its engine: it would show all keys that templates read."""
    return {"security.guestapi" if server == "incus" else "security.devlxd": "false"}


def limits(machine: Machine) -> dict[str, str]:
    return {
        "limits.cpu": str(machine.vcpus),
        "limits.memory": f"{machine.ram_bytes}B",
        "limits.processes": str(PROCESSES_MAX),
    }


def devices(machine: Machine, ours: Names, host: GuestHost) -> dict[str, dict[str, str]]:
    """Return the devices of a guest."""
    nics = {
        f"eth{number}": interfaces.nic(each, f"eth{number}", ours) for number, each in enumerate(machine.nics)
    }
    root = {"type": "disk", "path": "/", "pool": ours.pool, "size": f"{machine.disk_bytes}B"}
    cards: dict[str, dict[str, str]] = {}
    for number, slot in enumerate(machine.gpus):
        cards |= gpu_devices(slot, f"{_GPU}{number}", host)
    if cards and host.driver:
        cards[_DRIVER] = _shown(host.driver, nvidia.IN_GUEST)
        for file, path in nvidia.ICDS.items() if machine.graphics else ():
            cards[f"{_DRIVER}-{file.partition('.')[0]}"] = _shown(f"{host.driver}/{file}", path)
    disks = {**datasets.devices(machine.data, ours), **volume_devices(machine.volumes, ours)}
    return {"root": root, **nics, **cards, **disks}


def _shown(source: str, path: str) -> dict[str, str]:
    return {"type": "disk", "source": source, "path": path, "readonly": "true"}


def gpu_devices(slot: GpuSlot, name: str, host: GuestHost) -> dict[str, dict[str, str]]:
    """Select one card by its exact name: a device without a selector would add every card of the host.

    The engine gives slices to guests only with NVIDIA's toolkit. Without it, the guest gets the card's node, with which
    alone it can use nothing of a card in MIG mode, and the two nodes that open its slice.
    """
    address, _, uuid = slot.slot.partition("/")
    if slot.kind != GpuKind.MIG:
        return {name: {"type": "gpu", "gputype": "physical", "pci": slot.slot}}
    if not host.driver:
        return {name: {"type": "gpu", "gputype": "mig", "pci": address, "mig.uuid": uuid}}
    nodes = {
        f"{name}-{place}": {
            "type": "unix-char", "path": node.path, "major": str(node.major), "minor": str(node.minor), "mode": "0666",
        }
        for place, node in enumerate(host.slices[uuid])
    }  # fmt: skip
    return {name: {"type": "gpu", "gputype": "physical", "pci": address, _SLICE: uuid}, **nodes}


def resized(found: Mapping[str, Any], machine: Machine, ours: Names, host: GuestHost) -> dict[str, object]:
    """Return the complete new configuration: the one found, with the machine's settings and devices."""
    config = {key: value for key, value in found["config"].items() if key.startswith(_NOT_SETTINGS)}
    config |= settings(machine, ours, host) | {DISK: str(machine.disk_bytes)} | _run(machine)
    given = devices(machine, ours, host)
    old_nic = {key: value for key, value in given["eth0"].items() if key != "host_name"}
    old_nic |= {"ipv4.address": machine.address, **_OLD_FILTERS}
    if found.get("status") == "Running" and found["devices"].get("eth0") == old_nic:
        # Started by an earlier version: another port would cut its network. The next start assigns one.
        given["eth0"] = old_nic
    return {
        "config": config | {FINGERPRINT: fingerprint(config, given)},
        "devices": given,
        "profiles": [],
        "architecture": found["architecture"],
        "description": found.get("description", ""),
        "ephemeral": False,
    }


def is_new_run(found: Mapping[str, Any], machine: Machine) -> bool:
    """Check whether the machine's command must run again. Instances of older versions have no key, which
    means run 0."""
    return bool(machine.command) and found["config"].get(COMMAND_RUN, "0") != str(machine.command_run)


def _run(machine: Machine) -> dict[str, str]:
    return {COMMAND_RUN: str(machine.command_run)} if machine.command else {}


def exit_code_from(text: bytes) -> int | None:
    """Parse the exit code that a guest wrote. It may write anything: text that is not a number counts as a
    failure."""
    if not text.strip():
        return None
    try:
        code = int(text)
    except ValueError:
        return 255
    code = 128 - code if code < 0 else code  # ended by a signal: same code as in a shell
    return code if code <= 255 else 255


def kept(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, object]:
    """Return the configuration from before a restore, with only the engine's own values from after it."""
    noted = {key: value for key, value in after["config"].items() if key.startswith("volatile.")}
    own = {key: value for key, value in before["config"].items() if not key.startswith("volatile.")}
    fixed = {key: after[key] for key in ("profiles", "architecture", "description", "ephemeral")}
    return {**fixed, "config": own | noted, "devices": before["devices"]}


def ports_text(ports: tuple[Port, ...]) -> str:
    return ",".join(f"{port.host_port}:{port.guest_port}" for port in ports)


def ports_from(text: str) -> tuple[Port, ...]:
    pairs = (pair.split(":") for pair in text.split(",") if pair)
    return tuple(Port(int(host_port), int(guest_port)) for host_port, guest_port in pairs)


def sighting(found: Mapping[str, Any], host: str) -> Sighting:
    config, root = found["config"], found["devices"].get("root", {})
    mark = fingerprint(config, found["devices"])
    return Sighting(
        instance_id=InstanceId(config.get(ID, found["name"])),
        host=host,
        seen=_SEEN.get(found["status"], Seen.PENDING),
        vcpus=_number(config.get("limits.cpu", "")),
        ram_bytes=_number(config.get("limits.memory", "").removesuffix("B")),
        disk_bytes=_number(root.get("size", "").removesuffix("B")),
        slots=tuple(sorted(_slot(each) for each in found["devices"].values() if each.get("type") == "gpu")),
        altered=config.get(FINGERPRINT, mark) != mark or bool(found.get("profiles")),
        started_at=_started_at(found),
    )


def _started_at(found: Mapping[str, Any]) -> datetime | None:
    """Return when the engine last started the guest, including when the guest rebooted itself."""
    last_used_at = found.get("last_used_at", "")
    never = not last_used_at or last_used_at.startswith(("0001-", "1970-"))
    if found["status"] != "Running" or never:
        return None
    whole, _, rest = last_used_at.rstrip("Z").partition(".")
    at = datetime.fromisoformat(f"{whole[:19]}+00:00")
    return at + timedelta(microseconds=int(f"{rest[:6]:0<6}" if rest else 0))


def _identity(machine: Machine, ours: Names, key: HostKey) -> dict[str, str]:
    data = machine.user_data.rstrip("\r\n")
    keys = {
        names.TAG: ours.installation,
        ID: machine.id,
        PORTS: ports_text(machine.ports),
        "user.machine-id": names.machine_id(machine.id),
        **interfaces.settings(machine),
        DISK: str(machine.disk_bytes),
        "user.authorized-keys": "\n".join(machine.authorized_keys),
        "user.host-key": key.private,
        HOST_KEY: key.public,
        "user.jupyter-token": machine.jupyter_token,
        COMMAND: msgspec.json.encode(machine.command).decode() if machine.command else "",
        ENVIRONMENT: msgspec.json.encode(machine.environment).decode(),
        USER_DATA: data,
        "user.user-data-ends": machine.user_data[len(data) :].replace("\n", "n").replace("\r", "r"),
    }
    return {name: value for name, value in keys.items() if value} | _run(machine)


def _gpu_config(machine: Machine, driver: str) -> dict[str, str]:
    """Give the guest the host's libraries, which match its kernel module: through the engine, or from our
    folder."""
    if not machine.gpus or driver:
        return {}
    wanted = "compute,utility,graphics" if machine.graphics else "compute,utility"
    return {"nvidia.runtime": "true", "nvidia.driver.capabilities": wanted}


def _slot(device: Mapping[str, str]) -> str:
    """Reverse `gpu_devices`. Empty for a device that names no card, which adds every card."""
    address, slice_id = device.get("pci", ""), device.get("mig.uuid", device.get(_SLICE, ""))
    return f"{address}/{slice_id}" if slice_id else address


def uses_card(found: Mapping[str, Any], address: str) -> bool:
    """Check whether a guest has a card or a slice of it."""
    cards = [each for each in found["devices"].values() if each.get("type") == "gpu"]
    return any(address_of(_slot(each)) == address for each in cards)


def _number(text: str) -> int | None:
    return int(text) if text.isdecimal() else None
