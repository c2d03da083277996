"""`make up`: set up the installation, or continue an interrupted set-up, until a server and a host are ready.

Each step checks first and does only what is missing. So `make up` can be repeated, and interrupted anywhere.
"""

import os
import socket
import time
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
from teraflock.base.errors import Conflict, NotAuthenticated, NotFound, TeraflockError, Unavailable
from teraflock.client import Client
from teraflock.storage.open import open_database
from teraflock.tenant.service import TenantService
from teraflock.wire.console import ConsoleLinkRequest
from teraflock.wire.host import HostAnswer

HOST_SECONDS_MAX: Final = 30.0

OnProgress = Callable[[str], None]


class UpResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result."""

    server: str
    engine: Engine
    hosts: tuple[HostAnswer, ...]
    image: str
    """The state of the base image: `ready`, `building` or `failed` with a reason."""
    key_file: str
    log_file: str
    pid: int
    was_up: bool
    """Whether there was nothing to do."""
    version: str
    """The version of the running server. If it was started earlier, it may be older than this program."""
    console: str = ""
    """The address of the console, with a link that signs in the operator once."""
    other_server: str = ""
    """The address of another server that the commands still use, as before."""


def up(places: Places, on_progress: OnProgress, environment: Mapping[str, str] = os.environ) -> UpResult:
    finish_interrupted(places)  # an interrupted restore
    first = not places.settings.exists()
    on_progress("engine")
    chosen = _engine(places, first, environment)
    if first:
        _write_down(places, chosen, environment)
    settings = load_settings(places.server, environment)
    server = server_url(settings)
    on_progress("server")
    was_up = background.running_pid(places) is not None
    if was_up:
        _refuse_elsewhere(places, settings)
    else:
        _refuse_taken(settings)
    pid = background.start(places, lambda: _answers(server, environment))
    on_progress("key")
    key = _operator_key(places, settings, server, environment)
    other = _connect(places, Connection(server=server, key=key))
    with Client(server, key, ca_file=environment.get("TERA_CA", "")) as client:
        on_progress("host")
        hosts = _hosts(client)
        image = images.ensure_base(client, on_progress)
        version = client.health().version
        console = _console(client)
    return UpResult(
        server=server, engine=chosen, hosts=hosts, image=image, key_file=str(places.operator_key),
        log_file=str(places.log), pid=pid, was_up=was_up, version=version, console=console, other_server=other,
    )  # fmt: skip


def _write_down(places: Places, chosen: Engine, environment: Mapping[str, str]) -> None:
    """Save what the next start needs. The address of a database may contain a password."""
    places.cloud.mkdir(parents=True, exist_ok=True, mode=0o700)
    places.cloud.chmod(0o700)
    if chosen.kind == "simulated":
        put(places.why_simulated, msgspec.json.encode(chosen))
    text = settings_text(chosen, load_settings(places.server, environment), environment)
    put(places.settings, text.encode(), mode=0o600)


def prepare(places: Places, environment: Mapping[str, str] = os.environ) -> None:
    """Start the engine of an existing installation, for example after a reboot."""
    if places.settings.exists():
        _engine(places, False, environment)


def why_simulated(places: Places) -> Engine | None:
    """The reason, saved at set-up, why there is no real engine. None: no reason was saved."""
    try:
        return msgspec.json.decode(places.why_simulated.read_bytes(), type=Engine)
    except (OSError, msgspec.MsgspecError):
        return None


def _engine(places: Places, first: bool, environment: Mapping[str, str]) -> Engine:
    """At the first start, the best available engine. Later, only the one of the installation."""
    if first and not _lost_settings(places):
        return engine.prepared(engine.choose(places, environment), places)
    kept = Settings(engine="simulated") if first else load_settings(places.server, environment)
    if kept.engine == "simulated":
        was = why_simulated(places) or Engine(kind="simulated", description="the reason is unknown")
        return Engine(
            kind="simulated",
            description=f"chosen at set-up: {was.description}",
            repair=repair_of_simulated(was),
        )
    found = engine.prepared(
        engine.choose(places, {**environment, "TERA_LXD_SOCKET": _foreign(kept, places)}), places
    )
    if found.kind == "simulated":
        raise Unavailable(
            f"The engine of this installation is not available: {found.description}", hint=found.repair
        )
    return found


def _lost_settings(places: Places) -> bool:
    """Whether a simulated installation lost its settings. It must not start with another engine."""
    return places.why_simulated.exists() and Path(places.server.database(Settings())).exists()


def repair_of_simulated(was: Engine | None) -> str:
    """How to get real instances. Never suggests a purge, which would delete data, though older versions saved that."""
    repair = was.repair if was else ""
    return (
        repair
        if repair and "purge" not in repair
        else f"For real instances, set up a second installation: {engine.SECOND_INSTALLATION}"
    )


def _foreign(settings: Settings, places: Places) -> str:
    """The socket of an engine that is not ours; empty: it is ours."""
    return "" if Path(settings.lxd_socket).parent == places.lxd else settings.lxd_socket


def settings_text(chosen: Engine, settings: Settings, environment: Mapping[str, str]) -> str:
    """The engine, and the environment at the first start: later starts must use the same engine and database."""
    kept: dict[str, object] = {"engine": chosen.kind}
    if chosen.socket:
        kept["lxd_socket"] = chosen.socket
    for name in Settings.__struct_fields__:
        if environment.get(variable(name)):
            kept.setdefault(name, getattr(settings, name))
    lines = [
        f"{name} = {msgspec.json.encode(value).decode()}" for name, value in kept.items()
    ]  # JSON strings are valid TOML
    return "\n".join(["# Written by `make up`. docs/settings.md lists all settings.", *lines, ""])


def server_url(settings: Settings) -> str:
    host, port = address_of(settings.listen)
    shown = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 -- includes the loopback address
    return f"{'https' if settings.tls_cert else 'http'}://{f'[{shown}]' if ':' in shown else shown}:{port}"


def _answers(server: str, environment: Mapping[str, str]) -> bool:
    try:
        with Client(server, "", ca_file=environment.get("TERA_CA", ""), pause=lambda _: None) as client:
            client.health()
    except Unavailable:
        return False
    return True


def _refuse_taken(settings: Settings) -> None:
    """Called before our server starts, so any program that answers at its address is another one."""
    host, port = address_of(settings.listen)
    try:
        socket.create_connection((host, port), timeout=1).close()
    except OSError:
        return
    raise Conflict(
        f"Another program already answers at {settings.listen}",
        hint=f"Stop it, or choose another port: `TERA_LISTEN={host}:{port + 1} make up`",
    )


def _refuse_elsewhere(places: Places, settings: Settings) -> None:
    """Refuse a different address for a running server: waiting for it there would never end."""
    there = background.address(places)
    if there and there != settings.listen:
        raise Conflict(
            f"The server is already running at {there}, not at {settings.listen}",
            hint=f"To move it: `make down GUESTS=keep; TERA_LISTEN={settings.listen} make up`",
        )


def _operator_key(places: Places, settings: Settings, server: str, environment: Mapping[str, str]) -> str:
    """The key in the file if it is valid. Otherwise a new one, if the database is accessible."""
    try:
        key = places.operator_key.read_text("ascii").strip()
        with Client(server, key, ca_file=environment.get("TERA_CA", "")) as client:
            client.whoami()
        return key
    except (FileNotFoundError, NotAuthenticated):
        pass

    database = open_database(places.server.database(settings), SystemClock())
    try:
        service = TenantService(database, SystemClock())
        key = service.install().secret or service.operator_key().secret
    finally:
        database.close()
    connection.put_secret(places.operator_key, f"{key}\n".encode())
    return key


def _connect(places: Places, ours: Connection) -> str:
    """Connect the commands to this server. If they use another server, keep it and return its address."""
    try:
        kept = connection.read(places.connection)
    except TeraflockError:
        kept = None
    if kept and kept.server != ours.server and kept.key != ours.key:  # with our key it is our server, moved
        return kept.server
    if kept != ours:
        connection.write(places.connection, ours)
    return ""


def _console(client: Client) -> str:
    """A link for the console; empty: the running server is older and has none."""
    try:
        return client.transport.server + client.console.make_link(ConsoleLinkRequest()).path
    except NotFound:
        return ""


def _hosts(client: Client) -> tuple[HostAnswer, ...]:
    """The hosts. The server registers the report of its engine some time after its start."""
    until = time.monotonic() + HOST_SECONDS_MAX
    while True:
        found = client.hosts.page(limit=200).items
        if found or time.monotonic() >= until:
            return found
        time.sleep(0.1)
