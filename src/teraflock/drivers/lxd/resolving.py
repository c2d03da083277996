"""DNS names of a project's guests: `node-2` and `node-2.vision.internal`, visible only in the same network.

The engine runs a DNS server (dnsmasq) for each bridge. It watches one of our folders, with a file for each
guest. It does not read the host's /etc/hosts, and does not forward names that end in `.internal` or have no
dot.
"""

import contextlib
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from teraflock.drivers.lxd import guest
from teraflock.drivers.lxd.ids import remove_empty
from teraflock.drivers.lxd.names import Names

FOLDER: Final = Path("/var/lib/teraflock/names")
"""Not in our home folder: the DNS server runs as nobody and needs access. Not in /run: after a reboot the
engine starts the server before us, and the server watches only an existing folder."""
TOP: Final = "internal"


class Resolving:
    def __init__(self, ours: Names, folder: Path = FOLDER) -> None:
        self._folder = folder / ours.installation

    def server_settings(self, bridge: str) -> str:
        """Return the settings for the bridge's DNS server. Its folder must exist before it starts."""
        folder = self._of(bridge)
        return "\n".join(("no-hosts", "domain-needed", f"local=/{TOP}/", f"hostsdir={folder}"))

    def add(self, bridge: str, instance_id: str, address: str, hostname: str, domain: str) -> None:
        line = " ".join((address, *((f"{hostname}.{domain}",) if domain else ()), hostname)) + "\n"
        path = self._of(bridge) / instance_id
        with contextlib.suppress(OSError):
            if path.read_text("ascii") == line:
                return
        beside = self._folder / f".{instance_id}"
        beside.write_text(line, "ascii")
        beside.chmod(0o644)
        beside.replace(path)

    def add_found(self, instance: Mapping[str, Any]) -> None:
        """Add a guest from the engine's record of it."""
        config, bridge = instance["config"], instance["devices"].get("eth0", {}).get("network")
        hostname, address = config.get(guest.HOSTNAME), guest.address_of(instance)
        if hostname and address and bridge:
            self.add(bridge, config[guest.ID], address, hostname, config.get(guest.DOMAIN, ""))

    def remove(self, bridge: str, instance_id: str) -> None:
        """Empty the file, then remove it: the DNS server drops a file's names when the file changes."""
        path = self._folder / bridge / instance_id
        with contextlib.suppress(FileNotFoundError):
            path.write_text("", "ascii")
            path.unlink()

    def forget(self, bridge: str) -> None:
        """Remove all names of a deleted network."""
        shutil.rmtree(self._folder / bridge, ignore_errors=True)

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
