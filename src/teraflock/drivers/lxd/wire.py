"""Encrypts the traffic between hosts with WireGuard: in the kernel, or by `wireguard-go` where the kernel cannot.

The private key stays on this host, in a file that only root can read.
"""

import base64
import contextlib
import os
import shutil
import subprocess
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
START_SECONDS_MAX: Final = 10


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

    def key(self) -> WireKey:
        if not can_encrypt():
            return WireKey()
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

        public = X25519PrivateKey.from_private_bytes(self._private()).public_key()
        return WireKey(base64.b64encode(public.public_bytes_raw()).decode(), PORT)

    def connect(self, inner: str, peers: Iterable[Peer]) -> None:
        """Bring the interface up with these peers and no others."""
        if not self._exists():
            self._create()
        config = self._config(peers)
        done = subprocess.run(
            ["wg", "syncconf", self.device, "/dev/stdin"],
            input=config.encode(),
            capture_output=True,
            check=False,
        )
        up = (
            _ip("address", "replace", f"{inner}/32", "dev", self.device)
            and _ip("link", "set", self.device, "mtu", str(MTU), "up")
            and all(_ip("route", "replace", f"{peer.inner}/32", "dev", self.device) for peer in peers)
        )
        if done.returncode or not up:
            raise EngineRefused(
                "WireGuard rejected the links to other hosts",
                context={"reason": done.stderr.decode("utf-8", "replace")},
            )

    def is_up(self) -> bool:
        shown = subprocess.run(
            ["wg", "show", self.device, "peers"], capture_output=True, check=False
        )  # fails if its process died
        return shown.returncode == 0

    def disconnect(self) -> None:
        if self._exists():
            _ip("link", "delete", self.device)

    def _exists(self) -> bool:
        return Path(f"/sys/class/net/{self.device}").exists() and self.is_up()

    def _create(self) -> None:
        _ip("link", "delete", self.device)  # left by a process that died
        if _ip("link", "add", self.device, "type", "wireguard"):
            return
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            subprocess.run(  # it returns when its interface exists, and goes on in the background
                [USERSPACE, self.device],
                env={**os.environ, "WG_PROCESS_FOREGROUND": "0"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                check=False,
                timeout=START_SECONDS_MAX,
            )
        if not self._exists():
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
    return subprocess.run(["ip", *words], capture_output=True, check=False).returncode == 0
