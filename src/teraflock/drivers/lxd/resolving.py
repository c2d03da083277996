"""DNS names of a project's guests.

In a network, its guests are `node-2` and `node-2.vision.internal`, with their addresses there. In all networks of the
project, a guest is also `node-2.backend.vision.internal`, with its address in the network `backend`. The server adds
the names of guests on other hosts, and of those in peered networks (see `network/naming.py`). Nobody else can resolve
them. A name has both addresses of a guest, IPv4 and IPv6.

The engine runs a DNS server (dnsmasq) for each bridge. It watches two of our folders, that of the network and
that of the project, with a file for each guest. It does not read the host's /etc/hosts, and does not forward names
that end in `.internal` or have no dot, or questions about private addresses.
"""

import contextlib
import re
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec

from teraflock.drivers.lxd import kernel
from teraflock.drivers.lxd.families import FAMILIES, FOUR
from teraflock.drivers.lxd.ids import remove_empty
from teraflock.drivers.lxd.names import Names
from teraflock.network.naming import TOP, KnownName
from teraflock.network.walls import is_ours

FOLDER: Final = Path("/var/lib/teraflock/names")
"""Not in our home folder: the DNS server runs as nobody and needs access. Not in /run: after a reboot the
engine starts the server before us, and the server watches only an existing folder."""
KNOWN: Final = "known-"
"""Prefix of the files with names that the server gave: of instances on other hosts and in peered networks."""
_WORD: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,250}")
_PRIVATE: Final = ("no-hosts", "no-ident", "bogus-priv", "domain-needed")
"""What guests cannot ask about the host: its own names, its DNS servers, and the names of private addresses. dnsmasq
2.90 knows them all."""


class NamedPlace(msgspec.Struct, frozen=True):
    """A guest's interface: the bridge and its network's name, and the guest's address there."""

    bridge: str
    network: str
    address: str


class Named(msgspec.Struct, frozen=True, kw_only=True):
    """A guest and its names."""

    instance_id: str
    hostname: str
    domain: str
    project: str
    """Empty: from an earlier version, which had no names for all networks of a project."""
    places: tuple[NamedPlace, ...]


class Resolving:
    def __init__(self, ours: Names, folder: Path = FOLDER) -> None:
        self._folder = folder / ours.installation

    def server_settings(self, bridge: str, project: str) -> str:
        """Return the settings for the bridge's DNS server. Its folders must exist before it starts."""
        folders = (f"hostsdir={self._of(each)}" for each in (bridge, project))
        return "\n".join((*_PRIVATE, f"local=/{TOP}/", *folders))

    def add(self, guest: Named) -> None:
        """Add or change the names of a guest."""
        long = f".{guest.domain}" if guest.domain else ""
        everywhere = ""
        for place in guest.places:
            names = (f"{guest.hostname}{long}", guest.hostname) if long else (guest.hostname,)
            self._write(place.bridge, guest.instance_id, _lines(place.address, *names))
            if long and place.network:
                name = f"{guest.hostname}.{place.network}{long}"
                everywhere += _lines(place.address, name, six=kernel.can_route_ipv6())
        if everywhere and guest.project:
            self._write(guest.project, guest.instance_id, everywhere)

    def know(self, names: Iterable[KnownName], ours: Names) -> None:
        """Make the names that the server gave exactly these, in the folders that exist."""
        wanted: dict[tuple[str, str], str] = {}
        for each in names:
            folder = ours.bridge(each.network) if each.network else each.project
            # Nothing else gets into the name or the text of a file.
            if all(map(_WORD.fullmatch, (folder, each.id, *each.names))):
                file = (folder, f"{KNOWN}{each.id}")
                is_near = bool(each.network) and not each.is_peer
                lines = _lines(each.address, *each.names, six=is_near or kernel.can_route_ipv6())
                wanted[file] = wanted.get(file, "") + lines
        there = {(path.parent.name, path.name) for path in self._folder.glob(f"*/{KNOWN}*")}
        for folder, name in there - wanted.keys():
            self.remove((folder,), name)
        for (folder, name), text in wanted.items():
            if (self._folder / folder).is_dir():
                self._write(folder, name, text)

    def _write(self, folder: str, name: str, text: str) -> None:
        path = self._of(folder) / name
        with contextlib.suppress(OSError):
            if path.read_text("ascii") == text:
                return
        beside = self._folder / f".{folder}.{name}"
        beside.write_text(text, "ascii")
        beside.chmod(0o644)
        beside.replace(path)

    def remove(self, folders: Iterable[str], instance_id: str) -> None:
        """Empty each file, then remove it: the DNS server drops a file's names when the file changes."""
        for folder in filter(None, folders):
            path = self._folder / folder / instance_id
            with contextlib.suppress(FileNotFoundError):
                path.write_text("", "ascii")
                path.unlink()

    def forget(self, bridge: str, project: str) -> None:
        """Remove all names of a deleted network. The project's folder goes with its last name."""
        shutil.rmtree(self._folder / bridge, ignore_errors=True)
        with contextlib.suppress(OSError):
            (self._folder / project).rmdir()

    def leave(self) -> None:
        """Remove everything of this installation, and shared folders that no other installation uses."""
        shutil.rmtree(self._folder, ignore_errors=True)
        remove_empty(self._folder.parent)

    def _of(self, bridge: str) -> Path:
        folder = self._folder / bridge
        if not folder.is_dir():
            folder.mkdir(parents=True, exist_ok=True)
            for each in (self._folder.parent.parent, self._folder.parent, self._folder, folder):
                each.chmod(0o755)  # regardless of the umask
        return folder


def _lines(address: str, *names: str, six: bool = True) -> str:
    """The lines of a file that give names to both addresses of an interface. Without `six` to the first only: the host
    cannot route IPv6, and whoever tried it would wait."""
    families = FAMILIES if six and kernel.has_ipv6() and is_ours(address) else (FOUR,)
    return "".join(f"{each.address(address)} {' '.join(names)}\n" for each in families)
