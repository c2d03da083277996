"""Two tenants peer their networks with `tera`, with real containers and real packets, IPv4 and IPv6: nothing passes
until both agree, and open connections are cut when one of them withdraws."""

import time
from collections.abc import Iterator

import pytest
from tests.engine.sandbox import Sandbox
from tests.story.test_security_groups_engine import SMALL, Guest, Tenant, eventually, sandbox, two_tenants

from teraflock.network.ipv6 import six

__all__ = ["sandbox"]
pytestmark = pytest.mark.long("a server and two containers; tests/engine has the firewall on its own")

PORT = 8080
BACKGROUND = """
import os, socket, sys, threading, time
def leave():
    if os.fork():
        os._exit(0)
    os.setsid()
    for descriptor in (0, 1, 2):
        os.dup2(os.open("/dev/null", os.O_RDWR), descriptor)
"""
ECHO = f"""{BACKGROUND}
def answer(used):
    while data := used.recv(64):
        used.sendall(data)
server = socket.create_server(("", {PORT}), family=socket.AF_INET6, dualstack_ipv6=True)
leave()
while True:
    threading.Thread(target=answer, args=(server.accept()[0],), daemon=True).start()
"""
HOLD = f"""{BACKGROUND}
held = [socket.create_connection((address, {PORT}), 5) for address in sys.argv[1:]]
def talk(number, used):
    heard, used_until = 0, time.monotonic() + 300
    used.settimeout(300)
    while time.monotonic() < used_until:
        used.sendall(b"x")
        used.recv(1)
        heard += 1
        open(f"/tmp/new{{number}}", "w").write(str(heard))
        os.replace(f"/tmp/new{{number}}", f"/tmp/heard{{number}}")
        time.sleep(0.1)
leave()
for each in enumerate(held):
    threading.Thread(target=talk, args=each).start()
"""
TRY = f"""
import socket, sys
def passes(address):
    try:
        socket.create_connection((address, {PORT}), 2).close()
    except OSError:
        return "0"
    return "1"
print(*map(passes, sys.argv[1:]))
"""


@pytest.fixture(scope="module")
def tenants(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Tenant, Tenant]]:
    with two_tenants(sandbox, tmp_path_factory.mktemp("peers")) as both:
        yield both


def launched(tenant: Tenant, name: str) -> Guest:
    """A guest that answers everyone its walls let in."""
    made = tenant.ok("launch", "--name", name, *SMALL, "--json").json
    guest = Guest(name, made["private_address"], tenant)
    tenant.ok(
        "sg", "allow", "default", "--in", "--protocol", "tcp", "--port", str(PORT), "--from", "0.0.0.0/0"
    )
    guest.python(ECHO)
    guest.put(TRY, "/tmp/try.py")
    return guest


def ends(guest: Guest) -> tuple[str, str]:
    return guest.address, six(guest.address)


def passes(source: Guest, target: Guest) -> list[str]:
    """For IPv4 and IPv6, whether a connection is made."""
    done = source.cloud.ok("exec", source.name, "--", "python3", "/tmp/try.py", *ends(target))
    return done.out.split()


def heard(guest: Guest) -> list[int]:
    """How many answers the connections that it holds have had."""
    done = guest.cloud.ok(
        "exec", guest.name, "--", "sh", "-c", "for i in 0 1; do cat /tmp/heard$i; echo; done"
    )
    return [int(each) for each in done.out.split()]


def test_nothing_passes_until_both_agree_and_one_can_withdraw(tenants: tuple[Tenant, Tenant]) -> None:
    red, blue = tenants
    near, far = launched(red, "near"), launched(blue, "far")
    of_red, of_blue = (
        f"{each.ok('project', 'list', '--json').json[0]['id']}/default" for each in (red, blue)
    )

    def is_closed() -> None:
        assert passes(near, far) == ["0", "0"]
        assert passes(far, near) == ["0", "0"]

    def is_open() -> None:
        assert passes(near, far) == ["1", "1"]
        assert passes(far, near) == ["1", "1"]

    is_closed()
    red.ok("network", "peer", "default", "--with", of_blue)
    time.sleep(3)  # a change would hold by now
    is_closed()
    blue.ok("network", "peer", "default", "--with", of_red)
    eventually(is_open)
    near.python(HOLD, *ends(far))
    before = heard_more_than(near, [0, 0])
    heard_more_than(near, before)
    blue.ok("network", "unpeer", "default", "--with", of_red)
    eventually(is_closed)
    after = heard(near)
    time.sleep(2)
    assert heard(near) == after, "open connections are cut"
    # The other's consent does not last: both must agree again.
    blue.ok("network", "peer", "default", "--with", of_red)
    time.sleep(3)
    is_closed()
    assert heard(near) == after


def heard_more_than(guest: Guest, before: list[int]) -> list[int]:
    def check() -> list[int]:
        found = heard(guest)
        assert len(found) == 2
        assert all(now > then for now, then in zip(found, before, strict=True))
        return found

    found: list[int] = eventually(check)
    return found
