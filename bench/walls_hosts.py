"""Measure how soon a change of security groups holds on every host: three real engines on one machine, and a server.

Instances on three hosts ping each other 50 times a second, with IPv4 and IPv6, while a rule is revoked and allowed
again. A change holds when the last reply that it forbids, or the first that it allows, has arrived. The second part
stops the host program of one host, as if it hung: the others must not wait for it.
"""

import logging
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from tests.engine.joined import Ground, Server, join, three_sandboxes
from tests.engine.sandbox import NoSandbox, Sandbox

from bench import cloud_lxd
from bench.figures import Figure, Section
from teraflock.drivers.lxd import build
from teraflock.image import recipe
from teraflock.network.ipv6 import six

BAR_SECONDS: Final = 2.0
CHANGES: Final = 10
PAUSE_SECONDS: Final = 2.2
TITLE: Final = "a change of security groups, until it holds on every host"
RULE: Final = {"direction": "in", "protocol": "icmp", "ports": "", "peer": "0.0.0.0/0"}
RULES: Final = "/v1/security-groups/moving/rules"


def measure() -> Iterator[Section]:
    logging.getLogger("teraflock").setLevel(logging.ERROR)
    try:
        build.build(recipe.read("base"), cloud_lxd.IMAGES, created_at=1)
        with three_sandboxes("bench") as sandboxes, tempfile.TemporaryDirectory() as folder:
            yield Section(title=TITLE, figures=tuple(figures(sandboxes, Path(folder))))
    except (NoSandbox, build.BuildFailed) as reason:
        yield Section(title=TITLE, notes=(f"not measured: {reason}",))


def figures(sandboxes: dict[str, Sandbox], folder: Path) -> Iterator[Figure]:
    with sandboxes["one"].inside():
        server = Server(folder / "server")
        ground = Ground(server, sandboxes, folder)
        try:
            join(ground)
            addresses = {
                name: ground.launch(name, host)["private_address"]
                for name, host in (("a", "one"), ("b", "two"), ("c", "three"))
            }
            server.ok("POST", "/v1/security-groups", {"name": "moving"})
            for name in addresses:
                server.ok("PUT", f"/v1/security-groups/moving/instances/{name}")
                server.ok("DELETE", f"/v1/security-groups/default/instances/{name}")
            server.cloud.loops.start()
            yield from worst("three hosts", timed(server, addresses, ("ab", "bc", "ca")))
            pid = (ground.programs["three"].home / "host" / "host.pid").read_text().strip()
            sandboxes["three"].inside_command("kill", "-STOP", pid)
            yield from worst("two hosts while the third hangs", timed(server, addresses, ("ab", "ba")))
            sandboxes["three"].inside_command("kill", "-CONT", pid)
        finally:
            server.cloud.loops.stop()
            server.close()


def timed(server: Server, addresses: Mapping[str, str], pairs: tuple[str, ...]) -> list[float]:
    """How long each change took at each pair of instances."""
    seconds = round((CHANGES + 1) * PAUSE_SECONDS)
    targets = [(pair[0], form(addresses[pair[1]])) for pair in pairs for form in (str, six)]
    for source, target in targets:
        ping = f"setsid ping -D -i 0.02 -w {seconds} {target} > /tmp/{target} 2>&1 < /dev/null &"
        server.inside(source, "sh", "-c", ping)
    time.sleep(PAUSE_SECONDS)
    changes: list[tuple[float, bool]] = []
    rule: Any = None
    for number in range(CHANGES):
        allows = number % 2 == 0
        began = time.time()
        if allows:
            rule = server.ok("POST", RULES, RULE)
        else:
            server.ok("DELETE", f"{RULES}/{rule['id']}")
        changes.append((began, allows))
        time.sleep(PAUSE_SECONDS - (time.time() - began))
    time.sleep(PAUSE_SECONDS)
    replies = [times(server.inside(source, "cat", f"/tmp/{target}")) for source, target in targets]
    return [held(each, changes, place) for each in replies for place in range(CHANGES - 1)]


def times(shown: str) -> list[float]:
    """When each reply came."""
    return [float(each[1:].partition("]")[0]) for each in shown.splitlines() if "bytes from" in each]


def held(replies: list[float], changes: list[tuple[float, bool]], place: int) -> float:
    """When a change held, after it was asked for. The next one is the end of what it can explain."""
    (began, allows), (end, _) = changes[place], changes[place + 1]
    inside = [each - began for each in replies if began <= each < end]
    if allows:
        return min(inside, default=PAUSE_SECONDS)
    return max(inside, default=0.0)


def worst(what: str, found: list[float]) -> Iterator[Figure]:
    yield Figure(what=f"{what}: all {len(found)} times", unit="s", samples=tuple(found))
    yield Figure(what=f"{what}: the slowest", unit="s", samples=(max(found),), bar=BAR_SECONDS)
