"""`tera host join` on the new host: check the machine, prove who we are, store the answer, start the host program.

Each step can be repeated: run the command again after an interruption.
"""

import os
import socket
import ssl
import subprocess
from collections.abc import Callable, Mapping
from datetime import datetime
from hashlib import sha256
from hmac import compare_digest
from ipaddress import ip_address
from pathlib import Path
from typing import Final

import msgspec

from teraflock import __version__
from teraflock.app.installation import engine
from teraflock.app.installation.places import Places
from teraflock.app.joining import background, nvidia
from teraflock.app.joining.config import HostConfig, HostPlaces, is_root, key_of, read_config, write_config
from teraflock.app.settings import address_of
from teraflock.base.errors import BadInput, Refused, TeraflockError, Unavailable
from teraflock.base.filling import filled
from teraflock.base.quantities import count_text
from teraflock.drivers.joined.authority import request_for
from teraflock.drivers.joined.channel import Channel
from teraflock.drivers.joined.frames import Failed, raised
from teraflock.drivers.joined.site import PORT
from teraflock.drivers.lxd.rest import LxdClient
from teraflock.drivers.lxd.setup import member_of
from teraflock.drivers.lxd.wire import can_encrypt
from teraflock.host.inspect import inspect
from teraflock.host.model import Inspection
from teraflock.instance.join.model import JoinAnswer, JoinRequest

JOIN_PORT: Final = 8733
SECONDS_MAX: Final = 20.0
INSTALL: Final = Path(__file__).parents[4] / "scripts" / "engine-install"
"""Only in a checkout."""

OnProgress = Callable[[str], None]


class Ticket(msgspec.Struct, frozen=True):
    """The parts of the word that `tera host add` prints: `TOKEN@SERVER:PORT#FINGERPRINT`."""

    token: str
    server: str
    port: int
    fingerprint: str


class HostJoined(msgspec.Struct, frozen=True, kw_only=True):
    """The result."""

    name: str
    address: str
    listen: str
    engine: str
    member: str
    """Its name in the cluster of its LXD or Incus. Empty: it is in none."""
    gpus: int
    pid: int
    was_joined: bool


class JoinWish(msgspec.Struct, frozen=True, kw_only=True):
    """The options of the command."""

    ticket: Ticket
    address: str = ""
    listen: str = f"0.0.0.0:{PORT}"
    without_gpus: bool = False
    install_driver: bool = False
    simulated_hosts: str = ""
    """For trying it out: simulate a host with these cards, such as `1x8xV100`."""


def parse_ticket(word: str) -> Ticket:
    token, at, rest = word.strip().partition("@")
    place, hash_sign, fingerprint = rest.partition("#")
    host, _, port = place.rpartition(":") if place.rpartition(":")[2].isdigit() else (place, "", "")
    is_whole = at and hash_sign and token and host and len(fingerprint) == 64
    if not is_whole or not set(fingerprint) <= set("0123456789abcdef"):
        raise BadInput(
            "This is not what `tera host add` printed",
            hint="Copy the whole command: `tera host join TOKEN@SERVER#FINGERPRINT`, in quotes",
        )
    return Ticket(token, host.removeprefix("[").removesuffix("]"), int(port or JOIN_PORT), fingerprint)


def join(
    places: HostPlaces,
    wish: JoinWish,
    now: Callable[[], datetime],
    on_progress: OnProgress,
    environment: Mapping[str, str] = os.environ,
) -> HostJoined:
    _, port = _listen_address(wish.listen)
    found = read_config(places)
    if found is not None and found.server != f"{wish.ticket.server}:{wish.ticket.port}":
        raise Refused(
            f"This machine already joined the server at {found.server} as `{found.name}`",
            hint="To join another one, first run `tera host leave`",
        )
    was_joined = found is not None
    on_progress("machine")
    inspected = inspect()
    if not wish.simulated_hosts:
        _check_cards(inspected, wish, on_progress)
    on_progress("engine")
    kind, options = _engine(places, wish, environment)
    if found is None:
        on_progress("server")
        found = _ask(places, wish, port, inspected, kind, options, now)
        write_config(places, found)
    on_progress("host program")
    pid = background.start(places)
    member, gpus = found.options.get("member", ""), len(inspected.cards)
    return filled(HostJoined, found, member=member, gpus=gpus, pid=pid, was_joined=was_joined)


def _listen_address(listen: str) -> tuple[str, int]:
    try:
        host, port = address_of(listen)
        ip_address(host)
    except (BadInput, ValueError):
        port = 0
    if not port:
        raise BadInput(
            f"`--listen {listen[:60]}` is not an address with a port", hint="Write it as `0.0.0.0:8732`"
        )
    return host, port


def _check_cards(found: Inspection, wish: JoinWish, on_progress: OnProgress) -> None:
    """A card without its driver would join as a host without cards, which nobody wants."""
    if wish.without_gpus or not nvidia.needs_driver(found):
        return
    count = count_text(len(found.cards), "NVIDIA card")
    if not wish.install_driver:
        raise Refused(
            f"This machine has {count}, but no driver answers",
            hint="Repeat the command with `--install-driver`, or install it by hand: docs/hosts.md"
            " has the steps. To join without the cards: `--without-gpus`",
        )
    nvidia.install(nvidia.read_ground(), on_progress)
    raise Refused(
        f"The driver for {count} is installed, and works after a reboot",
        hint="Reboot, then run the same command again. If the token has expired by then, get a new one with"
        " `tera host add`",
    )


def _engine(places: HostPlaces, wish: JoinWish, environment: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    if wish.simulated_hosts:
        return "simulated", {"hosts": wish.simulated_hosts}
    if not is_root():
        raise Refused("Only root can make this machine a host", hint="Run the command as root")
    own = Places(places.home)
    if INSTALL.exists() and engine.choose(own, environment).kind == "simulated":
        subprocess.run(["sh", str(INSTALL)], check=False)
    chosen = engine.prepared(engine.choose(own, environment), own)
    if chosen.kind == "simulated":
        raise Refused(
            f"This machine cannot run instances: {chosen.description}",
            hint=chosen.repair or "Install LXD or Incus, then join again",
        )
    client = LxdClient(Path(chosen.socket))
    try:
        member = member_of(client)
    finally:
        client.close()
    return "lxd", {"socket": chosen.socket, **({"member": member} if member else {})}


def _ask(
    places: HostPlaces,
    wish: JoinWish,
    port: int,
    found: Inspection,
    kind: str,
    options: dict[str, str],
    now: Callable[[], datetime],
) -> HostConfig:
    ticket = wish.ticket
    hostname = socket.gethostname()
    is_real = kind != "simulated"
    request = JoinRequest(
        token=ticket.token,
        version=__version__,
        now=now(),
        hostname=hostname,
        port=port,
        certificate_request=request_for(key_of(places), hostname[:60] or "host"),
        cards=tuple(card.uuid for card in found.cards if card.uuid) if is_real else (),
        encrypts=can_encrypt() if is_real else True,
        address=wish.address,
    )
    answer = ask(ticket, request)
    return filled(
        HostConfig,
        answer,
        listen=wish.listen,
        engine=kind,
        options=options,
        server=f"{ticket.server}:{ticket.port}",
    )


def ask(ticket: Ticket, request: JoinRequest) -> JoinAnswer:
    """Send the request, but only to the server with the right certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE  # the fingerprint is compared instead
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    try:
        with (
            socket.create_connection((ticket.server, ticket.port), SECONDS_MAX) as raw,
            context.wrap_socket(raw) as tls,
        ):
            _check_fingerprint(ticket, tls.getpeercert(binary_form=True) or b"")
            channel = Channel(tls)
            channel.send(request, seconds_max=SECONDS_MAX)
            answer = channel.receive(JoinAnswer | Failed, seconds_max=SECONDS_MAX)  # type: ignore[arg-type]
    except TeraflockError:
        raise
    except OSError as error:
        raise Unavailable(
            f"The server does not answer at {ticket.server}:{ticket.port}",
            hint=f"Check its firewall. The port is open only while a token is valid ({error})",
        ) from None
    if isinstance(answer, Failed):
        raise raised(answer)
    assert isinstance(answer, JoinAnswer)
    return answer


def _check_fingerprint(ticket: Ticket, certificate: bytes) -> None:
    if not compare_digest(sha256(certificate).hexdigest(), ticket.fingerprint):
        raise Refused(
            f"Another server answers at {ticket.server}:{ticket.port}: its certificate has another fingerprint",
            hint="Do not continue unless you know why. The token was not sent",
        )
