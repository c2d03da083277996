"""All checks together: the machine, the engine, the database, the server and what it says of itself."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from teraflock.app.house import background, connection
from teraflock.app.house import engine as engines
from teraflock.app.house.health import (
    Finding,
    Machine,
    check_machine,
    guarded,
    mind,
    ok,
    skipped,
    wrong,
)
from teraflock.app.house.images import BASE
from teraflock.app.house.isolation import examined
from teraflock.app.house.places import Places
from teraflock.app.house.up import repair_of_simulated, server_url, why_simulated
from teraflock.app.settings import Settings, load_settings
from teraflock.base.clock import SystemClock
from teraflock.base.errors import Forbidden, NotAuthenticated, NotFound, TeraflockError, Unavailable
from teraflock.client import Client
from teraflock.drivers.lxd import daemon
from teraflock.fleet.alarms import FILL_PERCENTS
from teraflock.wire.host import HostAnswer


def examine(
    places: Places, tell: Callable[[str], None], environment: Mapping[str, str] = os.environ
) -> list[Finding]:
    """Everything, whatever else is wrong."""
    try:
        settings = load_settings(places.server, environment)
    except TeraflockError as error:
        return _without_settings(places, tell, environment, wrong("settings", error.sentence, error.hint))
    is_set_up = places.settings.exists()
    is_real = settings.engine == "lxd" if is_set_up else engines.choose(places, environment).kind == "lxd"
    machine = Machine(home=places.home, is_real=is_real)
    tell("this machine")
    kept = ok("settings", str(places.settings) if is_set_up else "all as shipped")
    findings = [*check_machine(machine), guarded("NVIDIA", nvidia), kept]
    tell("engine")
    findings.append(guarded("engine", lambda: engine(places, settings, environment)))
    tell("database")
    findings.append(guarded("database", lambda: database(places, settings)))
    tell("isolation")
    findings += examined(places, settings, is_real=is_real)
    tell("server")
    return [*findings, *server_side(places, settings, environment)]


def _without_settings(
    places: Places, tell: Callable[[str], None], environment: Mapping[str, str], broken: Finding
) -> list[Finding]:
    """What can be checked while nobody knows which engine and database are meant. The broken file comes first."""
    tell("this machine")
    machine = Machine(home=places.home, is_real=places.lxd.exists())
    unknown = "the settings cannot be read"
    return [
        broken,
        *check_machine(machine),
        guarded("NVIDIA", nvidia),
        skipped("engine", unknown),
        skipped("database", unknown),
        *server_side(places, None, environment),
    ]


def nvidia() -> Finding:
    """A host without a card is a host of CPUs; one whose driver does not answer is broken."""
    from teraflock.app.house.inspection import gpu_summary

    seen, cards, problems = gpu_summary()
    if not cards:
        return ok("NVIDIA", f"no card: this machine offers its CPUs ({seen})")
    if problems:
        return wrong(
            "NVIDIA", f"{seen}; {problems[0]}", "`tera host inspect` has all of it; `nvidia-smi` must answer"
        )
    return ok("NVIDIA", seen)


def engine(places: Places, settings: Settings, environment: Mapping[str, str]) -> Finding:
    if settings.engine == "simulated" and places.settings.exists():
        was = why_simulated(places)
        seen = f"SIMULATED: {was.told}" if was else "SIMULATED: nothing real is launched"
        return mind("engine", seen, repair_of_simulated(was))
    if settings.engine not in ("lxd", "simulated"):
        return ok("engine", f"{settings.engine}: see `sites`")
    socket = Path(settings.lxd_socket) if settings.lxd_socket else None
    if socket is None:
        chosen = engines.choose(places, environment)
        if chosen.kind == "simulated":
            return mind("engine", f"none: {chosen.told}", chosen.repair)
        return ok("engine", f"{chosen.told}; `make up` uses it")
    if daemon.answers(socket):
        return ok("engine", f"answers at {socket}")
    return wrong(
        "engine",
        f"nobody answers at {socket}",
        "`make up` starts it if it is ours; else start it as its owner",
    )


def database(places: Places, settings: Settings) -> Finding:
    address = places.server.database(settings)
    if "://" not in address and not Path(address).exists():
        return skipped("database", "none yet; `make up` makes it")
    from teraflock.storage.open import open_database
    from teraflock.tenant.installation.store import installation_id

    opened = open_database(address, SystemClock())
    try:
        with opened.read() as tx:
            installation_id(tx)
    finally:
        opened.close()
    return ok("database", address.rpartition("@")[2])


def server_side(places: Places, settings: Settings | None, environment: Mapping[str, str]) -> list[Finding]:
    """The server these commands speak to, and what it says with the key they have."""
    try:
        found = connection.find(places.connection, environment)
    except TeraflockError as error:
        return [wrong("server", error.sentence, error.hint), skipped("key", "no server")]
    if found is None:
        if background.running_pid(places) is None:
            return [wrong("server", "none runs and none is known", "`make up`"), skipped("key", "no server")]
        return [
            ok("server", f"runs at {server_url(settings)}" if settings else "runs"),
            wrong("key", "these commands have none", "`make up` writes it to connection.json"),
        ]
    with Client(found.server, found.key, ca_file=environment.get("TERA_CA", "")) as client:
        return _asked(client, found.server)


def _asked(client: Client, server: str) -> list[Finding]:
    try:
        health = client.health()
    except Unavailable as error:
        return [wrong("server", error.sentence, "`make up` starts it"), skipped("key", "the server is away")]
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
        return wrong("image", "there is no `base`", "`tera image build base`")
    if base.state == "failed":
        return wrong(
            "image", f"`base` could not be built: {base.problem}", "`tera image build base` tries again"
        )
    if base.state != "ready":
        return mind("image", f"`base` is {base.state}", "Wait for it: `tera image list`")
    return ok("image", "`base` is ready")


def hosts(client: Client) -> Finding:
    try:
        found = client.hosts.list()
    except Forbidden:
        return skipped("hosts", "for operators only")
    away = [host.name for host in found if host.state == "away"]
    if not found:
        return wrong("hosts", "none has reported", "Look at the engine, and at the server's log")
    if away:
        return wrong("hosts", f"{', '.join(away[:5])} away", "Look at the engine there")
    broken = [f"{gpu.slot} of {host.name}" for host in found for gpu in host.gpus if not gpu.healthy]
    if broken:
        return wrong(
            "hosts", f"not healthy: {', '.join(broken[:5])}", "`nvidia-smi -q` on that host says why"
        )
    if loose := [host.name for host in found if host.disk_limits != "hold"]:
        return wrong(
            "hosts",
            f"disk limits do not hold on {', '.join(loose[:5])}",
            "`tera host show` says why; if it lasts, `btrfs quota rescan` on the pool",
        )
    if full := _filling(found):
        return mind("hosts", full, "Delete images, snapshots or instances, or enlarge the pool")
    return ok("hosts", f"{len(found)} with {sum(len(host.gpus) for host in found)} GPUs")


def _filling(hosts: Sequence[HostAnswer]) -> str:
    """The pools that are nearly full; empty: none is."""
    percents = {host.name: host.disk_used_bytes * 100 // host.disk_bytes for host in hosts if host.disk_bytes}
    full = [f"{name} {percent} %" for name, percent in percents.items() if percent >= FILL_PERCENTS[0]]
    return f"disk pools filling up: {', '.join(full[:5])}" if full else ""
