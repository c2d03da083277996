"""Our own bridges and DNS servers, on a host whose engine is a member of a cluster.

A file for each bridge says what it is, so that everything can be created again after a reboot. The DNS servers survive
the host program, and are started again if they die.
"""

import contextlib
import fcntl
import os
import secrets
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import Final

import msgspec
from msgspec.structs import replace

from teraflock.drivers.lxd import kernel
from teraflock.drivers.lxd.firewall import Bridge
from teraflock.drivers.lxd.ids import remove_empty
from teraflock.drivers.lxd.names import Names
from teraflock.instance.driver import Network
from teraflock.instance.engine_errors import EngineRefused

FOLDER: Final = Path("/var/lib/teraflock/bridges")
RUNNING: Final = Path("/run/teraflock/dns")
LINKS: Final = Path("/sys/class/net")
SECONDS_MAX: Final = 10
END_TRIES_MAX: Final = 500
END_AGAIN_SECONDS: Final = 0.01


class KeptBridge(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    gateway: str
    length: int
    """Of the network's prefix."""
    hwaddr: str
    """Fixed: without it, a bridge takes over the one of some guest."""
    dns: str
    mtu: int = 0


class MemberBridges:
    """See `Bridges`."""

    def __init__(self, ours: Names, folder: Path = FOLDER, running: Path = RUNNING) -> None:
        self._folder = folder / ours.installation
        self._running = running / ours.installation

    def all(self) -> tuple[Bridge, ...]:
        return tuple(Bridge(each.name, each.gateway) for each in self._kept())

    def ensure(self, bridge: Bridge, network: Network, *, dns: str, mtu: int) -> bool:
        with self._alone():
            found = next((each for each in self._kept() if each.name == bridge.name), None)
            if found is not None and found.dns == dns:
                return False
            kept = found or KeptBridge(
                name=bridge.name,
                gateway=bridge.gateway,
                length=IPv4Network(network.subnet).prefixlen,
                hwaddr=f"02:{secrets.token_bytes(5).hex(':')}",
                dns="",
                mtu=mtu,
            )
            self._write(kept := replace(kept, dns=dns))
            self._stop(kept)
            self._bring_up(kept)
            return found is None

    def limit(self, name: str, mtu: int) -> None:
        with self._alone():
            for each in self._kept():
                if each.name == name and each.mtu != mtu:
                    self._write(replace(each, mtu=mtu))
                    _ip("link", "set", name, "mtu", str(mtu))

    def remove(self, name: str) -> None:
        with self._alone():
            for each in self._kept():
                if each.name == name:
                    self._stop(each)
                    _ip("link", "delete", name, may_fail=True)
                    self._file(each).unlink()
                    shutil.rmtree(self._running / name, ignore_errors=True)
        for folder in (self._folder, self._running):
            if not any(folder.glob("*.json")) and folder.exists():
                shutil.rmtree(folder, ignore_errors=True)
                remove_empty(folder.parent)

    def are_up(self) -> bool:
        return all((LINKS / each.name).exists() and self._pid(each) for each in self._kept())

    def keep(self) -> None:
        kept = self._kept()
        if kept:
            with self._alone():
                for each in kept:
                    self._bring_up(each)

    def _bring_up(self, kept: KeptBridge) -> None:
        if not (LINKS / kept.name).exists():
            _ip("link", "add", kept.name, "address", kept.hwaddr, "type", "bridge")
        (kernel.SYSTEM / "net/ipv4/ip_forward").write_text("1\n", "ascii")
        if kept.mtu:
            _ip("link", "set", kept.name, "mtu", str(kept.mtu))
        _ip("address", "replace", f"{IPv4Address(kept.gateway)}/{kept.length}", "dev", kept.name)
        _ip("link", "set", kept.name, "up")
        if not self._pid(kept):
            self._serve_names(kept)

    def _serve_names(self, kept: KeptBridge) -> None:
        folder = self._running / kept.name
        folder.mkdir(parents=True, exist_ok=True)
        settings = folder / "dnsmasq.conf"
        settings.write_text(
            f"interface={kept.name}\nlisten-address={IPv4Address(kept.gateway)}\nexcept-interface=lo\n"
            f"bind-interfaces\nno-negcache\nstrict-order\nuser=nobody\npid-file={folder / 'pid'}\n{kept.dns}\n",
            "ascii",
        )
        program = shutil.which("dnsmasq", path=f"{os.environ.get('PATH', '')}:/usr/sbin") or "dnsmasq"
        _run(program, f"--conf-file={settings}")

    def _pid(self, kept: KeptBridge) -> int | None:
        """The process of a bridge's DNS server. Another process may have its number now."""
        settings = f"--conf-file={self._running / kept.name / 'dnsmasq.conf'}"
        try:
            pid = int((self._running / kept.name / "pid").read_text("ascii"))
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except (OSError, ValueError):
            return None
        return pid if settings.encode() in words else None

    def _stop(self, kept: KeptBridge) -> None:
        pid = self._pid(kept)
        if pid is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)  # it keeps nothing
        for _ in range(END_TRIES_MAX):
            if not Path(f"/proc/{pid}").exists():
                return
            time.sleep(END_AGAIN_SECONDS)

    def _kept(self) -> list[KeptBridge]:
        found = []
        for path in sorted(self._folder.glob("*.json")):
            with contextlib.suppress(FileNotFoundError):
                found.append(msgspec.json.decode(path.read_bytes(), type=KeptBridge))
        return found

    def _file(self, kept: KeptBridge) -> Path:
        return self._folder / f"{kept.name}.json"

    def _write(self, kept: KeptBridge) -> None:
        beside = self._folder / f"{kept.name}.new"
        beside.write_bytes(msgspec.json.encode(kept))
        beside.replace(self._file(kept))

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        self._folder.mkdir(parents=True, exist_ok=True)
        with (self._folder / "lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def _ip(*words: str, may_fail: bool = False) -> None:
    _run("ip", *words, may_fail=may_fail)


def _run(*command: str, may_fail: bool = False) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS_MAX)
    if done.returncode and not may_fail:
        raise EngineRefused(
            "The host could not set up a network",
            hint="See the log of the host program",
            context={"command": " ".join(command), "message": done.stderr[-500:]},
        )
