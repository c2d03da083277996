"""Public addresses that this host has for guests: on the loopback interface, with our mark.

The host then answers for them on all its networks. The firewall's table leads them to guests.
"""

import subprocess
from collections.abc import Collection
from typing import Final

import msgspec

from teraflock.drivers.lxd.names import Names
from teraflock.instance.engine_errors import EngineRefused

SECONDS_MAX: Final = 10


class HostAddresses:
    def __init__(self, ours: Names) -> None:
        self._label = ours.address_label

    def keep_only(self, wanted: Collection[str]) -> None:
        """Give up all others of ours. Addresses without our mark are not touched."""
        for address in self._present() - set(wanted):
            _ip("address", "delete", f"{address}/32", "dev", "lo")

    def add(self, wanted: Collection[str]) -> None:
        for address in sorted(set(wanted) - self._present()):
            if not _ip("address", "add", f"{address}/32", "dev", "lo", "label", self._label):
                raise EngineRefused(
                    f"The host cannot use the public address {address}",
                    hint="Another program may use it: see `ip address`",
                )

    def _present(self) -> set[str]:
        asked = ["ip", "-json", "-4", "address", "show", "dev", "lo"]
        done = subprocess.run(asked, capture_output=True, check=False, timeout=SECONDS_MAX)
        links = msgspec.json.decode(done.stdout or b"[]")
        found = (each for link in links for each in link.get("addr_info", ()))
        return {each["local"] for each in found if each.get("label") == self._label}


def _ip(*words: str) -> bool:
    asked = ["ip", *words]
    return subprocess.run(asked, capture_output=True, check=False, timeout=SECONDS_MAX).returncode == 0
