"""Balancers on a real engine: real HAProxy, real packets, two backends."""

import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.engine import inside
from tests.engine.conftest import INSTALLATION, OPEN, MachineMaker, launched
from tests.engine.sandbox import INSIDE_ADDRESS, Sandbox

from teraflock.drivers.lxd import balancers, processors, shares, spaces
from teraflock.drivers.lxd.driver import Lxd
from teraflock.instance.driver import Machine, Network, Port
from teraflock.network.balancer.model import (
    BackendSpec,
    BackendState,
    BalancerId,
    BalancerProtocol,
    BalancerSpec,
)
from teraflock.network.ipv6 import six
from teraflock.network.rules import gateway, subnet
from teraflock.network.walls import Published
from teraflock.tenant.model import ProjectId

pytestmark = pytest.mark.skipif(balancers.program() is None, reason="haproxy is not installed")

NUMBER = 7
NETWORK = Network(
    project_id=ProjectId("prj_balanced"),
    number=NUMBER,
    subnet=str(subnet(NUMBER)),
    gateway=str(gateway(NUMBER)),
    domain="balanced.internal",
)
SERVE = """
import http.server, socket, sys
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        body = f"{socket.gethostname()} {self.client_address[0]} {self.headers.get('X-Forwarded-For')}".encode()
        self.send_response(200); self.send_header("Content-Length", str(len(body))); self.end_headers()
        self.wfile.write(body)
    def log_message(self, *words): pass
http.server.ThreadingHTTPServer(("", 8080), Handler).serve_forever()
"""


REQUESTS = 20
FETCH = """
import sys, urllib.request
for _ in range(int(sys.argv[3])):
    urllib.request.urlopen(f"http://{sys.argv[1]}:{sys.argv[2]}/", timeout=5).read()
print("done")
"""


GET_SIX = """
import socket, sys
link = socket.create_connection((sys.argv[1], 80), 5)
link.sendall(b"GET / HTTP/1.1\\r\\nHost: web\\r\\nConnection: close\\r\\n\\r\\n")
print(link.recv(4096).decode())
"""


class Pair:
    """Two guests that serve HTTP, and a balancer for them."""

    def __init__(self, driver: Lxd, one: Machine, other: Machine) -> None:
        self.driver, self.one, self.other = driver, one, other
        self.address = str(subnet(NUMBER)[3000])
        for machine in (one, other):
            launched(driver, machine)
            put = ["sh", "-c", "cat > /serve.py; setsid python3 /serve.py > /dev/null 2>&1 < /dev/null &"]
            driver.run(machine.handle, put, stdin=SERVE.encode(), seconds_max=20)
        OPEN[driver].admit(self.address)
        self.spec = BalancerSpec(
            id=BalancerId("lbr_0000000000000web"),
            name="web",
            project_id=NETWORK.project_id,
            network_number=NUMBER,
            network_key=NETWORK.key,
            domain=NETWORK.domain,
            host="here",
            address=self.address,
            protocol=BalancerProtocol.HTTP,
            port=80,
            target_port=8080,
            health_check="http:/health",
            check_seconds=2,
            backends=tuple(sorted(BackendSpec(each.id, each.address) for each in (one, other))),
        )

    @property
    def space(self) -> str:
        (name,) = spaces.names(f"tera-{INSTALLATION}-")
        return name

    def pids(self) -> list[int]:
        return spaces.processes(self.space)

    def get(self, port: int = 80) -> str:
        """The answer to one request, over a new connection."""
        with socket.create_connection((self.address, port), 5) as link:
            link.sendall(b"GET / HTTP/1.1\r\nHost: web\r\nConnection: close\r\n\r\n")
            answer = b""
            while part := link.recv(4096):
                answer += part
        assert answer.startswith(b"HTTP/1.1 200"), answer
        return answer.partition(b"\r\n\r\n")[2].decode()

    def servers(self, requests: int = 8) -> set[str]:
        return {self.get().split()[0] for _ in range(requests)}

    def sent(self) -> tuple[str, int]:
        """The epoch of its counter, and the bytes that it sent out of the host."""
        (found,) = [each for each in self.driver.all_sent() if str(each.instance_id) == self.spec.id]
        return found.epoch, found.bytes

    def states(self) -> dict[str, BackendState]:
        (seen,) = self.driver.balancers()
        return {each.instance_id: each.state for each in seen.backends}


@pytest.fixture
def pair(driver: Lxd, a_machine: MachineMaker) -> Iterator[Pair]:
    ports: tuple[Port, ...] = ()
    machines = [
        a_machine(NETWORK, address=str(subnet(NUMBER)[20 + number]), ports=ports) for number in range(2)
    ]
    made = Pair(driver, *machines)
    yield made
    driver.balance([])
    for machine in machines:
        driver.delete(machine.handle)
    driver.retire(NETWORK)


def eventually(check: Callable[[], bool], seconds: float = 20) -> None:
    until = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.05)


def test_life_of_a_balancer(pair: Pair, sandbox: Sandbox) -> None:
    driver, spec = pair.driver, pair.spec
    names = {pair.one.hostname, pair.other.hostname}
    driver.balance([spec])
    eventually(lambda: set(pair.states().values()) == {BackendState.UP})
    assert pair.servers() == names
    _, seen_from, forwarded = pair.get().split()
    assert (seen_from, forwarded) == (pair.address, NETWORK.gateway), "backends see the balancer"
    assert pair.address in inside.ran(driver, pair.one, "getent", "ahostsv4", "web.lb.balanced.internal")
    assert inside.python(driver, pair.one, GET_SIX, six(pair.address)).startswith("HTTP/1.1 200")
    # Nothing changes without a reason.
    before = pair.pids()
    driver.balance([spec])
    assert pair.pids() == before
    assert len(before) == 1
    check_rights(before[0], pair.space)
    # A backend that dies is out; connections that are open go on.
    held = socket.create_connection((pair.address, 80), 5)
    driver.stop(pair.other.handle, force=True)
    assert pair.servers() == {pair.one.hostname}
    eventually(lambda: pair.states()[pair.other.id] == BackendState.DOWN)
    # A change: the old process serves the connection that it has, the new one all others.
    alone = replace(spec, backends=(BackendSpec(pair.one.id, pair.one.address),))
    eventually(lambda: brings(driver, alone) and len(pair.pids()) == 2)
    assert before[0] in pair.pids()
    assert len(pair.pids()) == 2
    held.sendall(b"GET / HTTP/1.1\r\nHost: web\r\nConnection: close\r\n\r\n")
    assert held.recv(4096).startswith(b"HTTP/1.1 200")
    held.close()
    eventually(lambda: before[0] not in pair.pids())
    assert pair.servers() == {pair.one.hostname}
    # A killed HAProxy, and a lost namespace, are repaired.
    for pid in pair.pids():
        os.kill(pid, signal.SIGKILL)
    eventually(lambda: brings(driver, alone) and set(pair.states().values()) == {BackendState.UP})
    assert pair.servers() == {pair.one.hostname}
    spaces.disconnect(driver.balancing.plug(pair.address).port)
    driver.networks.rebuild()
    eventually(lambda: brings(driver, alone) and set(pair.states().values()) == {BackendState.UP})
    assert pair.servers() == {pair.one.hostname}
    # One project's balancer that cannot run keeps neither its own addresses nor other projects busy.
    broken = replace(alone, certificate="not PEM", key="not PEM", port=81)
    driver.balance([broken])
    driver.balance([alone])
    eventually(lambda: brings(driver, alone) and pair.servers() == {pair.one.hostname})
    sent = check_traffic(pair, sandbox)
    # Gone without a trace, but for its counter, which is read later.
    space = pair.space
    driver.balance([])
    assert spaces.names(space) == []
    assert [path for form in ("", "*/") for path in processors.CGROUPS.glob(f"{form}{space}")] == []
    assert list(driver.balancers()) == []
    driver.networks.rebuild()
    assert pair.sent() == sent
    with pytest.raises(OSError):
        pair.get()


def check_traffic(pair: Pair, sandbox: Sandbox) -> tuple[str, int]:
    """What it sends out of the host is counted, and what it sends to its backends is not."""
    driver, before = pair.driver, pair.sent()
    pair.servers()
    assert pair.sent() == before, "requests from the host itself and to backends are free"
    open_walls = driver.networks._walls._loaded
    assert open_walls is not None
    driver.enforce(replace(open_walls.walls, published=(Published("here", 30_007, pair.address, 80),)))
    fetched = sandbox.outside("python3", "-c", FETCH, INSIDE_ADDRESS, "30007", str(REQUESTS))
    assert fetched.stdout.strip() == "done", fetched.stderr
    after = pair.sent()
    assert after[0] == before[0], "the same counter"
    size = after[1] - before[1]
    assert REQUESTS * 100 <= size <= REQUESTS * 2_000
    driver.networks.rebuild()
    assert pair.sent() == after, "a rebuilt table keeps it"
    return after


def brings(driver: Lxd, spec: BalancerSpec) -> bool:
    """A change that comes right after another one waits for a later turn."""
    driver.balance([spec])
    return bool(driver.balancers())


def check_rights(pid: int, space: str) -> None:
    status = dict(
        line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":\t" in line
    )
    assert set(status["Uid"].split()) == {str(balancers.FIRST_USER + NUMBER)}
    assert status["Groups"].strip() == ""
    assert status["NoNewPrivs"] == "1"
    for kind in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(status[kind], 16) == 0, kind
    root = Path(f"/proc/{pid}/root")
    assert sorted(each.name for each in (root / "cell").iterdir()) == [
        "certificates", "haproxy.cfg", "run", "state",
    ]  # fmt: skip
    assert not any((root / each).exists() for each in ("etc", "home", "proc", "sys", "usr/bin", "var", "run"))
    assert "Max open files            8192" in Path(f"/proc/{pid}/limits").read_text()
    share = shares.ensure(space, balancers.PROCESSORS_MAX)
    assert share is not None
    assert str(pid) in share.read_text().split(), "its processor time is limited"
