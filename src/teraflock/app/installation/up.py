"""`make up`: from nothing, or from wherever it was cut off, to a server that answers and a host to launch on.

Each step looks first and does only what is missing, so the whole may be repeated and may end anywhere.
"""

import os
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import msgspec

from teraflock.app.files import put
from teraflock.app.installation import background, connection, engine, images
from teraflock.app.installation.backup.unfinished import finish_interrupted
from teraflock.app.installation.connection import Connection
from teraflock.app.installation.engine import Engine
from teraflock.app.installation.places import Places
from teraflock.app.settings import Settings, address_of, load_settings, variable
from teraflock.base.clock import SystemClock
from teraflock.base.errors import Conflict, NotAuthenticated, TeraflockError, Unavailable
from teraflock.client import Client
from teraflock.wire.host import HostAnswer

HOST_SECONDS_MAX: Final = 30.0

Tell = Callable[[str], None]


class Risen(msgspec.Struct, frozen=True, kw_only=True):
    """What stands at the end."""

    server: str
    engine: Engine
    hosts: tuple[HostAnswer, ...]
    image: str
    """Its state: `ready`, `building` or `failed`, and why."""
    key_file: str
    log_file: str
    pid: int
    was_up: bool
    """Whether there was nothing to do."""
    version: str
    """Of the server that runs; one that was started before may be older than this program."""
    other_server: str = ""
    """The commands here speak to this other one, as they did before."""


def up(places: Places, tell: Tell, environment: Mapping[str, str] = os.environ) -> Risen:
    finish_interrupted(places)  # a restore that was cut off
    first = not places.settings.exists()
    tell("engine")
    chosen = _engine(places, first, environment)
    if first:
        _write_down(places, chosen, environment)
    settings = load_settings(places.server, environment)
    server = server_url(settings)
    tell("server")
    was_up = background.running_pid(places) is not None
    if was_up:
        _refuse_elsewhere(places, settings)
    else:
        _refuse_taken(settings)
    pid = background.start(places, lambda: _answers(server, environment))
    tell("key")
    key = _operator_key(places, settings, server, environment)
    other = _connect(places, Connection(server=server, key=key))
    with Client(server, key, ca_file=environment.get("TERA_CA", "")) as client:
        tell("host")
        hosts = _hosts(client)
        image = images.ensure_base(client, tell)
        version = client.health().version
    return Risen(
        server=server, engine=chosen, hosts=hosts, image=image, key_file=str(places.operator_key),
        log_file=str(places.log), pid=pid, was_up=was_up, version=version, other_server=other,
    )  # fmt: skip


def _write_down(places: Places, chosen: Engine, environment: Mapping[str, str]) -> None:
    """What the next start must find again; a database's address may hold a password."""
    places.cloud.mkdir(parents=True, exist_ok=True, mode=0o700)
    places.cloud.chmod(0o700)
    if chosen.kind == "simulated":
        put(places.why_simulated, msgspec.json.encode(chosen))
    text = settings_text(chosen, load_settings(places.server, environment), environment)
    put(places.settings, text.encode(), mode=0o600)


def prepare(places: Places, environment: Mapping[str, str] = os.environ) -> None:
    """Bring the engine of a house that is set up to where a server can use it, as after a reboot."""
    if places.settings.exists():
        _engine(places, False, environment)


def why_simulated(places: Places) -> Engine | None:
    """What stood in the way of a real engine at set-up; None where nobody wrote it down."""
    try:
        return msgspec.json.decode(places.why_simulated.read_bytes(), type=Engine)
    except (OSError, msgspec.MsgspecError):
        return None


def _engine(places: Places, first: bool, environment: Mapping[str, str]) -> Engine:
    """At the first start whatever can be had; later the one the house was set up with, and nothing else."""
    if first and not _lost_settings(places):
        return engine.prepared(engine.choose(places, environment), places)
    kept = Settings(engine="simulated") if first else load_settings(places.server, environment)
    if kept.engine == "simulated":
        was = why_simulated(places) or Engine(kind="simulated", told="the reason is not known any more")
        return Engine(kind="simulated", told=f"it was set up so: {was.told}", repair=repair_of_simulated(was))
    found = engine.prepared(
        engine.choose(places, {**environment, "TERA_LXD_SOCKET": _foreign(kept, places)}), places
    )
    if found.kind == "simulated":
        raise Unavailable(f"The engine of this house cannot be had: {found.told}", hint=found.repair)
    return found


def _lost_settings(places: Places) -> bool:
    """Whether a simulated installation lost its settings: it must not wake up with another engine."""
    return places.why_simulated.exists() and Path(places.server.database(Settings())).exists()


def repair_of_simulated(was: Engine | None) -> str:
    """How to get real instances. Never by a purge, which would delete what is there; older versions noted that."""
    repair = was.repair if was else ""
    return (
        repair
        if repair and "purge" not in repair
        else f"For real instances, set up a second one: {engine.AFRESH}"
    )


def _foreign(settings: Settings, places: Places) -> str:
    """The socket of an engine that is not ours; empty: ours."""
    return "" if Path(settings.lxd_socket).parent == places.lxd else settings.lxd_socket


def settings_text(chosen: Engine, settings: Settings, environment: Mapping[str, str]) -> str:
    """The engine, and what the environment says at the first start: the next start must find the same house."""
    kept: dict[str, object] = {"engine": chosen.kind}
    if chosen.socket:
        kept["lxd_socket"] = chosen.socket
    for name in Settings.__struct_fields__:
        if environment.get(variable(name)):
            kept.setdefault(name, getattr(settings, name))
    lines = [
        f"{name} = {msgspec.json.encode(value).decode()}" for name, value in kept.items()
    ]  # JSON is TOML here
    return "\n".join(["# Written by `make up`; docs/settings.md lists all there is.", *lines, ""])


def server_url(settings: Settings) -> str:
    host, port = address_of(settings.listen)
    shown = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 -- everywhere is reached from here too
    return f"{'https' if settings.tls_cert else 'http'}://{f'[{shown}]' if ':' in shown else shown}:{port}"


def _answers(server: str, environment: Mapping[str, str]) -> bool:
    try:
        with Client(server, "", ca_file=environment.get("TERA_CA", ""), pause=lambda _: None) as client:
            client.health()
    except Unavailable:
        return False
    return True


def _refuse_taken(settings: Settings) -> None:
    """Before ours is started: whoever answers at its address is another."""
    host, port = address_of(settings.listen)
    try:
        socket.create_connection((host, port), timeout=1).close()
    except OSError:
        return
    raise Conflict(
        f"Another program answers at {settings.listen} already",
        hint=f"End it, or choose another port: `TERA_LISTEN={host}:{port + 1} make up`",
    )


def _refuse_elsewhere(places: Places, settings: Settings) -> None:
    """A server stays where it was started: to wait for it elsewhere would be in vain."""
    there = background.address(places)
    if there and there != settings.listen:
        raise Conflict(
            f"The server runs already, at {there} and not at {settings.listen}",
            hint=f"To move it: `make down GUESTS=keep; TERA_LISTEN={settings.listen} make up`",
        )


def _operator_key(places: Places, settings: Settings, server: str, environment: Mapping[str, str]) -> str:
    """The key in the file if it opens; else, with the database at hand, a new one."""
    try:
        key = places.operator_key.read_text("ascii").strip()
        with Client(server, key, ca_file=environment.get("TERA_CA", "")) as client:
            client.whoami()
        return key
    except (FileNotFoundError, NotAuthenticated):
        pass
    from teraflock.storage.open import open_database
    from teraflock.tenant.service import TenantService

    database = open_database(places.server.database(settings), SystemClock())
    try:
        service = TenantService(database, SystemClock())
        key = service.install().secret or service.operator_key().secret
    finally:
        database.close()
    connection.put_secret(places.operator_key, f"{key}\n".encode())
    return key


def _connect(places: Places, ours: Connection) -> str:
    """Let the commands here speak to this server, unless they speak to another one: then its address."""
    try:
        kept = connection.read(places.connection)
    except TeraflockError:
        kept = None
    if kept and kept.server != ours.server and kept.key != ours.key:  # our own key: our own server, moved
        return kept.server
    if kept != ours:
        connection.write(places.connection, ours)
    return ""


def _hosts(client: Client) -> tuple[HostAnswer, ...]:
    """The server registers what its engine reports, in its own time."""
    import time

    until = time.monotonic() + HOST_SECONDS_MAX
    while True:
        found = client.hosts.page(limit=200).items
        if found or time.monotonic() >= until:
            return found
        time.sleep(0.1)
