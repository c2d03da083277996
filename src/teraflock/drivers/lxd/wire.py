"""Encrypts the traffic between hosts with WireGuard: in the kernel, or by `wireguard-go` where the kernel cannot.

The private key stays on this host, in a file that only root can read.
"""

import base64
import contextlib
import os
import shutil
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from teraflock.instance.engine_errors import EngineRefused
from teraflock.network.fabric import Peer, WireKey

PORT: Final = 8735
"""UDP port of all hosts."""
MTU: Final = 1420
KEY_FILE: Final = "wire.key"
USERSPACE: Final = "wireguard-go"
TUN: Final = Path("/dev/net/tun")
PROBE: Final = "twprobe"
START_SECONDS_MAX: Final = 5.0
LOOK_AGAIN_SECONDS: Final = 0.05
COMMAND_SECONDS_MAX: Final = 5.0


def can_encrypt() -> bool:
    """Whether this machine has WireGuard. Needs root."""
    if shutil.which("wg") is None:
        return False
    if shutil.which(USERSPACE) is not None and TUN.exists():
        return True
    is_in_kernel = _ip("link", "add", PROBE, "type", "wireguard")
    if is_in_kernel:
        _ip("link", "delete", PROBE)
    return is_in_kernel


class EncryptedWire:
    """One WireGuard interface of this host."""

    def __init__(self, device: str, folder: Path) -> None:
        self.device = device
        self._key_path = folder / KEY_FILE
        self._can_encrypt = False

    def key(self) -> WireKey:
        self._can_encrypt = self._can_encrypt or can_encrypt()  # it is asked every few seconds
        if not self._can_encrypt:
            return WireKey()
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

        public = X25519PrivateKey.from_private_bytes(self._private()).public_key()
        return WireKey(base64.b64encode(public.public_bytes_raw()).decode(), PORT)

    def connect(self, inner: str, peers: Iterable[Peer]) -> None:
        """Bring the interface up with these peers and no others."""
        if not self.is_up():
            self._create()
        config = self._config(peers)
        is_set = _run("wg", "syncconf", self.device, "/dev/stdin", text=config)
        up = (
            _ip("address", "replace", f"{inner}/32", "dev", self.device)
            and _ip("link", "set", self.device, "mtu", str(MTU), "up")
            and all(_ip("route", "replace", f"{peer.inner}/32", "dev", self.device) for peer in peers)
        )
        if not (is_set and up):
            raise EngineRefused("WireGuard rejected the links to other hosts")

    def is_up(self) -> bool:
        return _run("wg", "show", self.device, "peers")  # fails if its process died

    def disconnect(self) -> None:
        if self.is_up():
            _ip("link", "delete", self.device)

    def _create(self) -> None:
        _ip("link", "delete", self.device)  # left by a process that died
        if _ip("link", "add", self.device, "type", "wireguard"):
            return
        _run(USERSPACE, self.device)  # it goes on in the background
        for _ in range(int(START_SECONDS_MAX / LOOK_AGAIN_SECONDS)):
            if self.is_up():
                return
            time.sleep(LOOK_AGAIN_SECONDS)
        raise EngineRefused("This host cannot start WireGuard", hint="Install `wireguard-go`")

    def _config(self, peers: Iterable[Peer]) -> str:
        lines = [
            "[Interface]",
            f"PrivateKey = {base64.b64encode(self._private()).decode()}",
            f"ListenPort = {PORT}",
        ]
        for peer in peers:
            key = base64.b64encode(base64.b64decode(peer.key, validate=True)).decode()
            lines += ["[Peer]", f"PublicKey = {key}", f"AllowedIPs = {peer.inner}/32"]
            lines.append(f"Endpoint = {peer.address}:{int(peer.port)}")
            # greets the peer at once: otherwise a peer of a host that restarted notices it after 15 seconds
            lines.append("PersistentKeepalive = 25")
        return "\n".join(lines) + "\n"

    def _private(self) -> bytes:
        with contextlib.suppress(FileNotFoundError):
            return self._key_path.read_bytes()
        self._key_path.parent.mkdir(parents=True, exist_ok=True)
        beside = self._key_path.with_suffix(f".{os.getpid()}.new")
        with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:  # noqa: PTH123
            file.write(os.urandom(32))
        with contextlib.suppress(FileExistsError):
            os.link(beside, self._key_path)
        beside.unlink()
        return self._key_path.read_bytes()


def _ip(*words: str) -> bool:
    return _run("ip", *words)


def _run(*command: str, text: str = "") -> bool:
    """Whether a command succeeds. Its output is not read: `wireguard-go` keeps it open in the background."""
    try:
        done = subprocess.run(
            command,
            input=text.encode(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
            timeout=COMMAND_SECONDS_MAX,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
