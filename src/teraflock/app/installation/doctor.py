"""All health checks: the machine, the engine, the database, the server and what the server reports."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from teraflock.app.installation import background, connection
from teraflock.app.installation import engine as engines
from teraflock.app.installation.health import (
    Finding,
    ThisMachine,
    check_machine,
    guarded,
    ok,
    skipped,
    warning,
    wrong,
)
from teraflock.app.installation.images import BASE
from teraflock.app.installation.inspection import gpu_summary
from teraflock.app.installation.isolation import examined
from teraflock.app.installation.orphans import accounts
from teraflock.app.installation.places import Places
from teraflock.app.installation.up import repair_of_simulated, server_url, why_simulated
from teraflock.app.settings import Settings, load_settings
from teraflock.base.clock import SystemClock
from teraflock.base.errors import Forbidden, NotAuthenticated, NotFound, TeraflockError, Unavailable
from teraflock.client import Client
from teraflock.drivers.lxd import daemon
from teraflock.fleet.alarms import FILL_PERCENTS
from teraflock.storage.open import open_database
from teraflock.tenant.installation.store import installation_id
from teraflock.wire.host import HostAnswer


def examine(
    places: Places, on_progress: Callable[[str], None], environment: Mapping[str, str] = os.environ
) -> list[Finding]:
    """Run every check, even if others fail."""
    try:
        settings = load_settings(places.server, environment)
    except TeraflockError as error:
        return _without_settings(
            places, on_progress, environment, wrong("settings", error.sentence, error.hint)
        )
    is_set_up = places.settings.exists()
    is_real = settings.engine == "lxd" if is_set_up else engines.choose(places, environment).kind == "lxd"
    machine = ThisMachine(home=places.home, is_real=is_real)
    on_progress("this machine")
    kept = ok("settings", str(places.settings) if is_set_up else "defaults")
    findings = [*check_machine(machine), guarded("NVIDIA", nvidia), kept]
    on_progress("engine")
    findings.append(guarded("engine", lambda: engine(places, settings, environment)))
    on_progress("database")
    findings.append(guarded("database", lambda: database(places, settings)))
    on_progress("isolation")
    findings += examined(places, settings, is_real=is_real)
    on_progress("server")
    return [*findings, *server_side(places, settings, environment)]


def _without_settings(
    places: Places, on_progress: Callable[[str], None], environment: Mapping[str, str], broken: Finding
) -> list[Finding]:
    """The checks that do not depend on the settings. The broken settings file comes first."""
    on_progress("this machine")
    machine = ThisMachine(home=places.home, is_real=places.lxd.exists())
    unknown = "the settings are not readable"
    return [
        broken,
        *check_machine(machine),
        guarded("NVIDIA", nvidia),
        skipped("engine", unknown),
        skipped("database", unknown),
        *server_side(places, None, environment),
    ]


def nvidia() -> Finding:
    """A host without a card is a CPU host. A host whose driver does not answer is broken."""
    seen, cards, problems = gpu_summary()
    if not cards:
        return ok("NVIDIA", f"no cards: this machine offers CPUs only ({seen})")
    if problems:
        return wrong(
            "NVIDIA",
            f"{seen}; {problems[0]}",
            "See `tera host inspect`. `tera host install-driver` installs a missing driver",
        )
    return ok("NVIDIA", seen)


def engine(places: Places, settings: Settings, environment: Mapping[str, str]) -> Finding:
    if settings.engine == "simulated" and places.settings.exists():
        was = why_simulated(places)
        seen = f"SIMULATED: {was.description}" if was else "SIMULATED: launches nothing real"
        return warning("engine", seen, repair_of_simulated(was))
    if settings.engine not in ("lxd", "simulated"):
        return ok("engine", f"{settings.engine}: see `sites`")
    socket = Path(settings.lxd_socket) if settings.lxd_socket else None
    if socket is None:
        chosen = engines.choose(places, environment)
        if chosen.kind == "simulated":
            return warning("engine", f"none: {chosen.description}", chosen.repair)
        return ok("engine", f"{chosen.description}; `make up` uses it")
    if daemon.answers(socket):
        return ok("engine", f"answers at {socket}")
    return wrong(
        "engine",
        f"no answer at {socket}",
        "`make up` starts our own engine. Start any other engine yourself",
    )


def database(places: Places, settings: Settings) -> Finding:
    address = places.server.database(settings)
    if "://" not in address and not Path(address).exists():
        return skipped("database", "none yet; `make up` creates it")

    opened = open_database(address, SystemClock())
    try:
        with opened.read() as tx:
            installation_id(tx)
    finally:
        opened.close()
    return ok("database", address.rpartition("@")[2])


def server_side(places: Places, settings: Settings | None, environment: Mapping[str, str]) -> list[Finding]:
    """The server that the commands use, and what it reports for their key."""
    try:
        found = connection.find(places.connection, environment)
    except TeraflockError as error:
        return [wrong("server", error.sentence, error.hint), skipped("key", "no server")]
    if found is None:
        if background.running_pid(places) is None:
            return [
                wrong("server", "not running, and no other server is configured", "`make up`"),
                skipped("key", "no server"),
            ]
        return [
            ok("server", f"runs at {server_url(settings)}" if settings else "runs"),
            wrong("key", "the commands have no key", "`make up` writes it to connection.json"),
        ]
    with Client(found.server, found.key, ca_file=environment.get("TERA_CA", "")) as client:
        return _asked(client, found.server)


def _asked(client: Client, server: str) -> list[Finding]:
    try:
        health = client.health()
    except Unavailable as error:
        return [
            wrong("server", error.sentence, "`make up` starts it"),
            skipped("key", "the server does not answer"),
        ]
    mark = " SIMULATED" if health.simulated else ""
    findings = [ok("server", f"{server}, version {health.version}, engine {health.engine}{mark}")]
    try:
        who = client.whoami()
    except NotAuthenticated as error:
        return [*findings, wrong("key", error.sentence, error.hint)]
    findings.append(ok("key", f"{who.member_name} of {who.organisation_name}"))
    return [
        *findings,
        guarded("image", lambda: image(client)),
        guarded("hosts", lambda: hosts(client)),
        guarded("sites", lambda: sites(client)),
        guarded("accounts", lambda: accounts(client)),
    ]


def sites(client: Client) -> Finding:
    try:
        found = client.sites.list()
    except Forbidden:
        return skipped("sites", "for operators only")
    broken = [each for each in found if each.problem]
    if broken:
        names = "; ".join(f"{each.name}: {each.problem}" for each in broken)
        return wrong("sites", names, f"`tera site check {broken[0].name}` asks it again")
    return ok("sites", ", ".join(each.name for each in found) or "none")


def image(client: Client) -> Finding:
    try:
        base = client.images.get(BASE)
    except NotFound:
        return wrong("image", "there is no image `base`", "`tera image build base`")
    if base.state == "failed":
        return wrong(
            "image", f"could not build `base`: {base.problem}", "Try again with `tera image build base`"
        )
    if base.state != "ready":
        return warning("image", f"`base` is {base.state}", "Wait for it; `tera image list` shows its state")
    return ok("image", "`base` is ready")


def hosts(client: Client) -> Finding:
    try:
        found = client.hosts.list()
    except Forbidden:
        return skipped("hosts", "only operators can check them")
    away = [host.name for host in found if host.state == "away"]
    if not found:
        return wrong("hosts", "no host has reported", "Check the engine and the server's log")
    if away:
        return wrong("hosts", f"{', '.join(away[:5])} away", "Check the engine there")
    broken = [f"{gpu.slot} of {host.name}" for host in found for gpu in host.gpus if not gpu.healthy]
    if broken:
        return wrong("hosts", f"unhealthy cards: {', '.join(broken[:5])}", "Run `nvidia-smi -q` on that host")
    if loose := [host.name for host in found if host.disk_limits != "hold"]:
        return wrong(
            "hosts",
            f"disk limits are not enforced on {', '.join(loose[:5])}",
            "`tera host show` shows the reason. If it persists, run `btrfs quota rescan` on the pool",
        )
    if full := _filling(found):
        return warning("hosts", full, "Delete images, snapshots or instances, or enlarge the pool")
    return ok("hosts", f"{len(found)} with {sum(len(host.gpus) for host in found)} GPUs")


def _filling(hosts: Sequence[HostAnswer]) -> str:
    """The pools that are nearly full, as text; empty if none is."""
    percents = {host.name: host.disk_used_bytes * 100 // host.disk_bytes for host in hosts if host.disk_bytes}
    full = [f"{name} {percent} %" for name, percent in percents.items() if percent >= FILL_PERCENTS[0]]
    return f"disk pools filling up: {', '.join(full[:5])}" if full else ""
