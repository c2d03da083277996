"""The server's port for hosts that join. It is open only while an invitation can be used.

A host checks the server's certificate against the fingerprint in its command before it sends its token, so this port
needs no certificate from a public authority, and a wrong server learns nothing.
"""

import logging
import socket
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Final

from teraflock.app.settings import Settings, address_of
from teraflock.base.errors import BadInput, Refused, TeraflockError, Unavailable
from teraflock.drivers.joined.channel import Channel
from teraflock.drivers.joined.frames import Failed, failed
from teraflock.drivers.joined.strangers import Strangers
from teraflock.host.inspect import inspect, own_address
from teraflock.instance.join.model import JoinAnswer, JoinPlace, JoinRequest

if TYPE_CHECKING:
    from teraflock.drivers.joined.authority import Authority

LOG: Final = logging.getLogger("teraflock.hosts")
SECONDS_MAX: Final = 10.0
REQUEST_BYTES_MAX: Final = 256 << 10
CONNECTIONS_MAX: Final = 16


class JoinPort:
    """Also the authority that signs the certificates of hosts. Its keys are read when they are first needed."""

    def __init__(self, derive: Callable[[str], bytes], settings: Settings) -> None:
        self._derive = derive
        self._listen = settings.join_listen
        self._address = settings.join_address
        self.join: Callable[[JoinRequest, str], JoinAnswer] | None = None
        """Decides about a request from an address."""
        self._socket: socket.socket | None = None
        self._lock = threading.Lock()
        self._strangers = Strangers(CONNECTIONS_MAX, seconds_max=SECONDS_MAX)

    @cached_property
    def authority(self) -> "Authority":
        from teraflock.drivers.joined.authority import (
            Authority,
        )  # only servers with joined hosts need cryptography

        return Authority(self._derive)

    def join_place(self) -> JoinPlace:
        """Open the port, and say where hosts find it and how they recognise it."""
        port = self.open_port()
        host = address_of(self._listen)[0]
        anywhere = host in ("0.0.0.0", "::")  # noqa: S104 -- compared, not bound
        address = self._address or (own_address() if anywhere else host)
        place = f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
        return JoinPlace(server=place, fingerprint=self.authority.server.fingerprint)

    def open_port(self) -> int:
        """Open the port, if it is not open already. Return its number."""
        if not self._listen:
            raise Refused("Hosts cannot join this server", hint="Set `join_listen`, such as `0.0.0.0:8733`")
        with self._lock:
            if self._socket is None:
                self._socket = _listening(self._listen)
                _Accepting(self, self._socket).start()
            return int(self._socket.getsockname()[1])

    def close(self) -> None:
        with self._lock:
            sock, self._socket = self._socket, None
        if sock is not None:
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()

    def follow(self, is_wanted: bool) -> None:
        """Open or close the port. A port that cannot be opened is tried again later."""
        if not is_wanted:
            self.close()
        elif self._listen:
            try:
                self.open_port()
            except TeraflockError as error:
                LOG.warning("%s", error.sentence)

    def accept(self, sock: socket.socket) -> None:
        """Answer hosts until the socket is closed."""
        while True:
            try:
                raw, source = sock.accept()
            except OSError:
                return  # closed
            self._strangers.add(raw, str(source[0]))
            threading.Thread(target=self._answer, args=(raw, str(source[0])), daemon=True).start()

    def _answer(self, raw: socket.socket, source: str) -> None:
        from teraflock.drivers.joined.authority import joining_context

        try:
            with raw, self._strangers.secured(raw, joining_context(self.authority.server)) as tls:
                channel = Channel(tls, received_bytes_max=REQUEST_BYTES_MAX)
                request = channel.receive(JoinRequest, seconds_max=SECONDS_MAX)
                channel.send(self._decided(request, source), seconds_max=SECONDS_MAX)
                channel.receive(JoinRequest, seconds_max=SECONDS_MAX)  # wait until the host closes
        except (OSError, TimeoutError):
            pass
        finally:
            self._strangers.remove(raw)

    def _decided(self, request: JoinRequest, source: str) -> JoinAnswer | Failed:
        try:
            assert self.join is not None
            answer = self.join(request, source.removeprefix("::ffff:"))
        except TeraflockError as error:
            LOG.warning("a host at %s may not join: %s", source, error.sentence)
            return failed(error)
        except Exception as error:
            LOG.exception("a host at %s could not join", source)
            return failed(error)
        LOG.info("%s joined from %s", answer.name, source)
        return answer


class _Accepting(threading.Thread):
    def __init__(self, port: JoinPort, sock: socket.socket) -> None:
        super().__init__(name="joins", daemon=True)
        self._port = port
        self._socket = sock

    def run(self) -> None:
        self._port.accept(self._socket)


def _listening(listen: str) -> socket.socket:
    try:
        host, port = address_of(listen)
    except BadInput:
        raise BadInput(
            f"The setting `join_listen` is not an address with a port: {listen}",
            hint="Write it as `0.0.0.0:8733`",
        ) from None
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise Unavailable(
            f"The server cannot listen for new hosts on `{listen}`: {error.strerror}",
            hint="Set `join_listen` to a free address and port",
        ) from None


def own_gpus(settings: Settings) -> Mapping[str, str]:
    """The GPUs of this machine, if it runs instances itself: the host of each UUID."""
    if settings.engine != "lxd":
        return {}
    found = inspect()
    return {card.uuid: found.name for card in found.cards if card.uuid}
