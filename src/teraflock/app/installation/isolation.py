"""Checks the isolation of tenants on this machine, from inside a temporary guest."""

from collections.abc import Mapping, Sequence
from typing import Final

from teraflock.app.engines import lxd_driver
from teraflock.app.installation.health import Finding, guarded, ok, skipped, warning, wrong
from teraflock.app.installation.places import Places
from teraflock.app.settings import Settings, address_of
from teraflock.base.clock import SystemClock
from teraflock.drivers.lxd import ids
from teraflock.drivers.lxd.throwaway import NETWORK
from teraflock.host.inspect import host_report
from teraflock.storage.open import open_database
from teraflock.tenant.installation.store import installation_id

Said = Mapping[str, Mapping[str, str]]
BY_FILTER: Final = ("refused: EPERM", "refused: ENOSYS")
CREDENTIALS: Final = "169.254.169.254:80"
"""The address at which public clouds give a machine's credentials to any program on it."""


def examined(places: Places, settings: Settings, *, is_real: bool) -> list[Finding]:
    """Run the checks. An exception becomes a result."""
    if not is_real or not places.settings.exists():
        return [skipped("isolation", "no real engine, so there is nothing to isolate")]
    found: list[Finding] = []

    def look() -> Finding:
        found.extend(_looked(places, settings))
        return found.pop()

    last = guarded("isolation", look)
    return [*found, last]


def judged(said: Said, settings: Settings) -> list[Finding]:
    """Turn the output of the probe into findings."""
    return [
        _ids(said["facts"]),
        _closed("isolation: kernel keys", said["keys"], "it may read keys of other tenants"),
        _closed("isolation: disks", said["disk"], "nested subvolumes have no disk limit"),
        _surface(said["surface"], settings),
        _reach(said["reach"]),
        _layers(said["facts"]),
    ]


def _looked(places: Places, settings: Settings) -> list[Finding]:
    installation = _installation(places, settings)
    if not installation:
        return [skipped("isolation", "no installation yet; `make up` creates it")]
    driver = lxd_driver(places.server, settings, installation, SystemClock())
    try:
        return [*judged(driver.probe(_targets(settings)), settings), *_running(driver.unconfined())]
    finally:
        driver.close()


def _installation(places: Places, settings: Settings) -> str:
    database = open_database(places.server.database(settings), SystemClock())
    try:
        with database.read() as tx:
            return installation_id(tx) or ""
    finally:
        database.close()


def _targets(settings: Settings) -> list[str]:
    """Services of the host: at its address, if that is not loopback, and at the gateway's."""
    _, port = address_of(settings.listen)
    here = {NETWORK.gateway, host_report().address}
    hosts = sorted(address for address in here if not address.startswith("127."))
    return [CREDENTIALS, *(f"{host}:{each}" for host in hosts for each in (port, 22))]


def _ids(facts: Mapping[str, str]) -> Finding:
    words = facts["ids"].split()
    if len(words) == 3 and words[2] == str(ids.SIZE) and ids.index_of(int(words[1])) is not None:
        return ok("isolation: user ids", "each instance has its own range")
    return wrong(
        "isolation: user ids",
        f"instances share user ids ({facts['ids']})",
        "Check /etc/subuid and /etc/subgid, then run `make up`",
    )


def _closed(check: str, attempts: Mapping[str, str], meaning: str) -> Finding:
    passed = [what for what, result in attempts.items() if result not in BY_FILTER]
    if not passed:
        return ok(check, f"{len(attempts)} attempts refused")
    return wrong(
        check,
        f"an instance can {passed[0]}: {meaning}",
        "The engine needs seccomp; `lxc info` shows whether it has it",
    )


def _surface(attempts: Mapping[str, str], settings: Settings) -> Finding:
    """What a setting opened is a warning. What is open without a setting is an error."""
    check = "isolation: kernel surface"
    opened = {
        "user namespace": settings.guest_user_namespaces,
        "io_uring": settings.guest_io_uring,
        "bpf": settings.guest_bpf,
    }
    kinds = {what: next(kind for kind in opened if what.startswith(kind)) for what in attempts}
    passed = {kinds[what] for what, result in attempts.items() if result not in BY_FILTER}
    if by_mistake := sorted(kind for kind in passed if not opened[kind]):
        return wrong(
            check,
            f"open: {', '.join(by_mistake)}",
            "The engine needs seccomp; `lxc info` shows whether it has it",
        )
    if passed:
        return warning(
            check, f"opened by settings: {', '.join(sorted(passed))}", "Close it unless your tenants need it"
        )
    return ok(check, "io_uring, bpf and user namespaces are closed")


def _reach(attempts: Mapping[str, str]) -> Finding:
    answered = [target for target, result in attempts.items() if result == "allowed"]
    if answered:
        return wrong(
            "isolation: network",
            f"instances reach {', '.join(answered)}",
            "`tera host allow-out` shows what is open",
        )
    return ok("isolation: network", "instances reach neither the host nor the credentials address")


def _layers(facts: Mapping[str, str]) -> Finding:
    missing = []
    if facts["seccomp"] != "2":
        missing.append("seccomp")
    if facts["AppArmor"] in ("", "unconfined"):
        missing.append("AppArmor")
    if facts["cgroups"] == "v1":
        missing.append("cgroups v2")
    if missing:
        return warning(
            "isolation: layers",
            f"not on this machine: {', '.join(missing)}",
            "docs/isolation.md explains each of them",
        )
    return ok("isolation: layers", "seccomp, AppArmor, cgroups v2")


def _running(shared: Sequence[str]) -> list[Finding]:
    if not shared:
        return []
    seen = f"{len(shared)} running without their own user ids: {', '.join(shared[:3])}"
    return [wrong("isolation: instances", seen, "Restart them: an earlier version of Teraflock started them")]
