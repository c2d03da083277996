"""Runs the balancers of this host: one HAProxy for each project that has some.

Nothing is kept in memory. A project's HAProxy is found by its network namespace, whose name has our installation and
the project's bridge; its folder has the configuration that it was started with. So a new server finds what runs,
starts balancers that were killed, and stops those that are not wanted. HAProxy itself survives the server.

A change starts a new HAProxy, which takes over the listening sockets. The old one serves its connections to their end.
"""

import contextlib
import fcntl
import logging
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from socket import AF_UNIX, socket
from typing import Final

import msgspec

from teraflock.base.errors import TeraflockError
from teraflock.drivers.lxd import haproxy, kernel, names, shares, spaces
from teraflock.drivers.lxd.names import Names
from teraflock.drivers.lxd.network import LxdNetworks, network_of_key
from teraflock.drivers.lxd.resolving import Named, NamedPlace
from teraflock.instance.driver import Network
from teraflock.instance.engine_errors import EngineRefused
from teraflock.network.balancer.model import BalancerSeen, BalancerSpec
from teraflock.network.naming import SUBDOMAIN

LOG: Final = logging.getLogger("teraflock.lxd")
FOLDER: Final = Path("/run/teraflock/balancers")
"""In memory, because it has keys. After a reboot no HAProxy runs either."""
FIRST_USER: Final = 2_100_000_000
"""The user of a project's HAProxy is this and the number of its network: beyond the ranges of guests and systemd."""
OLD_MAX: Final = 4
"""How many old HAProxies of a project may serve connections. A tenant who changes often gets no more memory."""
PROCESSORS_MAX: Final = 1.0
"""Of all HAProxies of a project on a host together."""
ANSWER_SECONDS_MAX: Final = 2.0
ANSWER_BYTES_MAX: Final = 1 << 20
START_SECONDS_MAX: Final = 30
END_TRIES_MAX: Final = 100
START_PAUSE_SECONDS: Final = 1.0
"""Between two starts for one project: a tenant who changes all the time does not keep the host busy."""
REFUSED_SECONDS: Final = 30.0


def program() -> str | None:
    return shutil.which("haproxy", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")


class UsedAddress(msgspec.Struct, frozen=True):
    """What has to be undone when a balancer ends."""

    id: str
    address: str


class LxdBalancers:
    def __init__(self, ours: Names, networks: LxdNetworks, folder: Path = FOLDER) -> None:
        self._ours = ours
        self._networks = networks
        self._folder = folder / ours.installation
        self._prefix = f"tera-{ours.installation}-"
        self._tried: dict[str, tuple[float, str]] = {}
        """By bridge: when HAProxy was last started, and the digest of the configuration if it was refused."""
        networks.balancer_addresses = self.addresses

    def balance(self, wanted: Sequence[BalancerSpec]) -> None:
        """See `BalancerDriver`. One project's trouble does not keep another's balancers from running."""
        if not wanted and not self._folder.is_dir():
            return
        by_bridge: dict[str, list[BalancerSpec]] = {}
        for spec in wanted:
            by_bridge.setdefault(self._ours.bridge(spec.network_key), []).append(spec)
        with self._alone():
            for bridge in self._present() - set(by_bridge):
                self._remove(bridge)
            for bridge, specs in by_bridge.items():
                try:
                    self._bring(bridge, specs)
                except TeraflockError as error:
                    LOG.warning("balancers of %s: %s %s", specs[0].project_id, error, error.context)

    def balancers(self) -> Sequence[BalancerSeen]:
        found = (self._ask(bridge, "show stat") for bridge in self._present())
        return [each for answer in found if answer for each in haproxy.seen(answer)]

    def addresses(self) -> dict[str, str]:
        """The addresses that balancers use, for the guard and the counters, with their ids."""
        return {each.address: each.id for bridge in self._present() for each in self._members(bridge)}

    def leave(self) -> None:
        """Remove everything of this installation."""
        if self._folder.is_dir():
            with self._alone():
                for bridge in self._present():
                    self._remove(bridge)
            shutil.rmtree(self._folder, ignore_errors=True)

    def _bring(self, bridge: str, specs: Sequence[BalancerSpec]) -> None:
        space, first = self._space(bridge), specs[0]
        folder = self._made(bridge, FIRST_USER + first.network_number)
        before = self._members(bridge)
        wanted = [UsedAddress(each.id, each.address) for each in specs]
        gone = [each for each in before if each not in wanted]
        there = spaces.connected(space, bridge)
        missing = [each for each in specs if each.address not in there]
        _write(folder / "members", msgspec.json.encode([*wanted, *gone]))
        if missing:
            self._networks.ensure(_network(first))
            spaces.ensure(space)
        for spec in specs:
            if spec in missing or UsedAddress(spec.id, spec.address) not in before:
                place = NamedPlace(bridge, "", spec.address)
                self._networks.admit_named(
                    Named(
                        instance_id=spec.id,
                        hostname=f"{spec.name}.{SUBDOMAIN}",
                        domain=spec.domain,
                        project=spec.project_id,
                        places=(place,),
                    )
                )
                self._networks.count(spec.address, spec.id)
            if spec in missing:
                spaces.connect(space, bridge, self.plug(spec.address), spec.network_number)
        for each in gone:
            self._disconnect(bridge, each)
        _write(folder / "members", msgspec.json.encode(wanted))
        self._run(bridge, specs)

    def _run(self, bridge: str, specs: Sequence[BalancerSpec]) -> None:
        """Start HAProxy, or a new one if the configuration changed."""
        folder, cell = self._folder / bridge, self._folder / bridge / "cell"
        user = FIRST_USER + specs[0].network_number
        text = haproxy.configuration(specs, with_ipv6=kernel.has_ipv6())
        keys = {f"{haproxy.word(each.id)}.pem": each.certificate + each.key for each in specs if each.key}
        digest = sha256(msgspec.json.encode((text, keys), order="sorted")).hexdigest()
        is_alive = bool(self._ask(bridge, "show info"))
        if (is_alive and _text(folder / "loaded") == digest) or self._waits(bridge, digest):
            return
        for path in (cell / "certificates").iterdir():
            if path.name not in keys:
                path.unlink()
        for name, content in keys.items():
            _write(cell / "certificates" / name, content.encode(), group=user)
        _write(cell / "haproxy.cfg", text.encode(), group=user)
        state = self._ask(bridge, "show servers state") if is_alive else ""
        _write(cell / "state", state.encode(), group=user)
        self._tried[bridge] = (time.monotonic(), digest)
        self._start(bridge, user, is_alive=is_alive)
        _write(folder / "loaded", digest.encode())
        self._tried[bridge] = (time.monotonic(), "")

    def _waits(self, bridge: str, digest: str) -> bool:
        """Whether HAProxy was started a moment ago, or refused just this configuration."""
        at, refused = self._tried.get(bridge, (0.0, ""))
        pause = REFUSED_SECONDS if refused == digest else START_PAUSE_SECONDS
        return at > 0 and time.monotonic() - at < pause

    def _start(self, bridge: str, user: int, *, is_alive: bool) -> None:
        space, found = self._space(bridge), program()
        running = spaces.processes(space)
        for pid in running[:-OLD_MAX]:
            _kill(pid, signal.SIGTERM)
        old = [str(pid) for pid in running[-OLD_MAX:]]
        take_over = ["-x", "/cell/run/admin.sock"] if is_alive else []
        command = [found or "/usr/sbin/haproxy", "-D", "-f", "/cell/haproxy.cfg", *take_over]
        share = shares.ensure(space, PROCESSORS_MAX)
        if share is None:
            LOG.warning("balancers of %s: the host has no cgroups to limit their processor time", bridge)
        launcher = [sys.executable, "-m", "teraflock.drivers.lxd.cell", str(user), str(self._folder / bridge)]
        launcher.append(str(share or "-"))
        done = subprocess.run(
            [*spaces.enter(space), *launcher, *command, *(["-sf", *old] if old else [])],
            capture_output=True,
            text=True,
            check=False,
            timeout=START_SECONDS_MAX,
        )
        if done.returncode != 0:
            raise EngineRefused(
                "The host could not start a balancer",
                hint="The server's log has the reason",
                context={"reason": (done.stdout + done.stderr)[-1000:]},
            )

    def _ask(self, bridge: str, question: str) -> str:
        """Ask a project's HAProxy. Empty: it does not answer. The path belongs to its user, so trust nothing there."""
        path = self._folder / bridge / "cell" / "run" / "admin.sock"
        answer = b""
        with contextlib.suppress(OSError):
            if not stat.S_ISSOCK(path.lstat().st_mode):
                return ""
            with socket(AF_UNIX) as link:
                link.settimeout(ANSWER_SECONDS_MAX)
                link.connect(str(path))
                link.sendall(f"{question}\n".encode())
                while len(answer) < ANSWER_BYTES_MAX and (part := link.recv(1 << 16)):
                    answer += part
        return answer.decode("ascii", "replace")

    def _remove(self, bridge: str) -> None:
        space = self._space(bridge)
        for each in self._members(bridge):
            self._disconnect(bridge, each)
        for _ in range(END_TRIES_MAX):
            running = spaces.processes(space)
            for pid in running:
                _kill(pid, signal.SIGKILL)
            if not running:
                break
            time.sleep(0.02)
        spaces.remove(space)
        shares.remove(space)
        shutil.rmtree(self._folder / bridge, ignore_errors=True)

    def _disconnect(self, bridge: str, member: UsedAddress) -> None:
        spaces.disconnect(self.plug(member.address).port)
        self._networks.dismiss_named(member.id, (member.address,), (bridge,))

    def _made(self, bridge: str, user: int) -> Path:
        """The folder of a project. HAProxy can read `cell` and write to `cell/run`."""
        folder = self._folder / bridge
        cell = folder / "cell"
        for path in (folder / "root", cell / "certificates", cell / "run"):
            path.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)
        for path, owner, mode in (
            (cell, 0, 0o750),
            (cell / "certificates", 0, 0o750),
            (cell / "run", user, 0o700),
        ):
            os.chown(path, owner, user)
            path.chmod(mode)
        return folder

    def _members(self, bridge: str) -> list[UsedAddress]:
        try:
            return msgspec.json.decode(
                (self._folder / bridge / "members").read_bytes(), type=list[UsedAddress]
            )
        except (OSError, msgspec.MsgspecError):
            return []

    def _present(self) -> set[str]:
        """Bridges with a folder or a namespace."""
        spaced = {
            names.BRIDGE_PREFIX + each.removeprefix(self._prefix) for each in spaces.names(self._prefix)
        }
        foldered = {each.name for each in self._folder.glob(f"{names.BRIDGE_PREFIX}*")}
        return spaced | foldered

    def _space(self, bridge: str) -> str:
        return self._prefix + bridge.removeprefix(names.BRIDGE_PREFIX)

    def plug(self, address: str) -> spaces.Plug:
        hardware = names.hardware_address(self._ours.installation, address)
        return spaces.Plug(address=address, port=self._ours.port(address), hardware=hardware)

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with (self._folder / "lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def _network(spec: BalancerSpec) -> Network:
    return network_of_key(spec.network_key, spec.network_number, spec.project_id, spec.domain)


def _kill(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def _text(path: Path) -> str:
    try:
        return path.read_text("ascii")
    except OSError:
        return ""


def _write(path: Path, content: bytes, *, group: int = 0) -> None:
    """Replace a file at once, readable by root and the group."""
    beside = path.with_name(f".{path.name}.new")
    beside.unlink(missing_ok=True)
    with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o640), "wb") as file:  # noqa: PTH123
        os.fchown(file.fileno(), 0, group)
        file.write(content)
    beside.replace(path)
