"""Links the bridges of this host with those of other hosts, and repairs the links.

A process that starts replaces all of its devices. Later calls change what differs. Tables come first, so no frame
passes a device that is not guarded.
"""

import socket
import subprocess
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from teraflock.drivers.lxd import links as plans
from teraflock.drivers.lxd import netlink, nft
from teraflock.drivers.lxd.links import HostLink
from teraflock.drivers.lxd.names import Names
from teraflock.drivers.lxd.wire import EncryptedWire
from teraflock.instance.engine_errors import EngineRefused
from teraflock.network.fabric import Fabric, WireKey


class Linking:
    """The caller holds the lock of the host's firewall."""

    def __init__(self, ours: Names, folder: Path) -> None:
        self._ours = ours
        self._wire = EncryptedWire(ours.wire, folder)
        self._loaded: Fabric | None = None
        self._links: dict[str, HostLink] = {}

    def key(self) -> WireKey:
        return self._wire.key()

    def apply(self, fabric: Fabric, bridges: Iterable[str], limit: Callable[[HostLink], None]) -> None:
        """Make the links exactly these. `limit` sets the size of packets of a network that is newly linked."""
        wanted = {link.device: link for link in plans.links(self._ours, fabric, bridges)}
        if fabric == self._loaded and wanted == self._links and self._is_intact():
            return
        if self._loaded is None or not self._is_intact():
            self._drop_devices()
        self._guard(fabric, wanted)
        encrypted = [peer for peer in fabric.peers if peer.inner]
        if encrypted:
            self._wire.connect(fabric.inner, encrypted)
        else:
            self._wire.disconnect()
        for device in set(self._links) - set(wanted):
            self._remove(self._links.pop(device))
        for link in wanted.values():
            self._bring(link, limit)
        self._loaded = fabric

    def drop(self) -> None:
        """Remove everything."""
        self._drop_devices()
        self._wire.disconnect()
        nft.run(plans.removal(self._ours))
        self._loaded = None

    def _guard(self, fabric: Fabric, wanted: Mapping[str, HostLink]) -> None:
        if not fabric.peers:
            nft.run(plans.removal(self._ours))
        elif not nft.run(plans.tables(self._ours, fabric, tuple(wanted.values()))):
            raise EngineRefused("The host's firewall rejected the rules for links to other hosts")

    def _bring(self, link: HostLink, limit: Callable[[HostLink], None]) -> None:
        before = self._links.get(link.device)
        if before is None or before.mtu != link.mtu or before.bridge != link.bridge:
            limit(link)
            _batch("ip", [f"link delete {link.device}"], must=False)
            _batch("ip", plans.device_commands(link))
            before = None
        addresses, frames = plans.station_commands(link, before.stations if before else {})
        _batch("ip", addresses, must=False)
        _batch("bridge", frames, must=False)
        self._links[link.device] = link

    def _remove(self, link: HostLink) -> None:
        known = [each for address in link.stations for each in plans.both(address)]
        gone = [f"neighbour delete {each} dev {link.bridge}" for each in known]
        _batch("ip", [*gone, f"link delete {link.device}"], must=False)

    def _drop_devices(self) -> None:
        for link in self._links.values():
            self._remove(link)
        self._links = {}
        for device in _devices():
            if device.startswith(self._ours.link_prefix):
                _batch("ip", [f"link delete {device}"], must=False)

    def _is_intact(self) -> bool:
        """Whether devices and tables are there: after `nft flush ruleset` or a removed bridge they are not."""
        if self._loaded is None:
            return False
        if not self._loaded.peers:
            return True
        has_devices = self._links.keys() <= _devices()
        has_wire = self._wire.is_up() if self._loaded.inner else True
        return has_devices and has_wire and netlink.has_chain(self._ours.links_table, "receive")


def _devices() -> set[str]:
    return {name for _, name in socket.if_nameindex()}


def _batch(program: str, lines: list[str], *, must: bool = True) -> None:
    if not lines:
        return
    force = [] if must else ["-force"]
    text = "\n".join(lines) + "\n"
    done = subprocess.run(
        [program, *force, "-batch", "-"], input=text.encode(), capture_output=True, check=False
    )
    if must and done.returncode:
        reason = done.stderr.decode("utf-8", "replace")
        raise EngineRefused("This host cannot link its networks with other hosts", context={"reason": reason})
