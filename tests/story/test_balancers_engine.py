"""Load balancers with a real server, containers and HAProxy: TLS, dying backends, changes, restarts, attacks."""

import json
import os
import signal
import ssl
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from tests.engine.sandbox import INSIDE_ADDRESS, Sandbox
from tests.story.real_cloud import engine_sandbox
from tests.story.test_security_groups_engine import Tenant, eventually, kill_server
from tests.unit.network.balancer.certificates import pem_of, self_signed

from teraflock.drivers.lxd import balancers

pytestmark = [
    pytest.mark.long("a server and three containers; tests/engine has balancers on their own"),
    pytest.mark.skipif(balancers.program() is None, reason="haproxy is not installed"),
]
SMALL = ("--vcpus", "1", "--ram", "256MB", "--disk", "1", "--wait")
SERVE = """
import http.server, socket
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path in ("/", "/health") else 404); self.end_headers()
        self.wfile.write(f"{socket.gethostname()} {self.client_address[0]}".encode())
    def log_message(self, *words): pass
http.server.ThreadingHTTPServer(("", 8080), Handler).serve_forever()
"""
GET = """
import socket, ssl, sys
address, port, tls, count = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "tls", int(sys.argv[4])
context = ssl.create_default_context(); context.check_hostname = False; context.verify_mode = ssl.CERT_NONE
for _ in range(count):
    try:
        with socket.create_connection((address, port), 5) as plain:
            link = context.wrap_socket(plain) if tls else plain
            link.sendall(b"GET / HTTP/1.0\\r\\n\\r\\n")
            answer = b""
            while part := link.recv(4096):
                answer += part
        print(answer.partition(b"\\r\\n\\r\\n")[2].decode() or "empty")
    except OSError as error:
        print("failed", error)
"""
HOLD = """
import socket, sys, time
link = socket.create_connection((sys.argv[1], int(sys.argv[2])), 5)
print("held", flush=True)
sys.stdin.readline()
link.sendall(b"GET / HTTP/1.0\\r\\n\\r\\n")
answer = b""
while part := link.recv(4096):
    answer += part
print(answer.decode(), flush=True)
"""


class Stage:
    def __init__(self, sandbox: Sandbox, red: Tenant) -> None:
        self.sandbox, self.red = sandbox, red
        for name in ("w1", "w2"):
            red.ok("launch", "--name", name, "--label", "app=web", *SMALL)
            put = "cat > /serve.py; setsid python3 /serve.py > /dev/null 2>&1 < /dev/null &"
            assert red.given(SERVE, "exec", name, "--stdin", "--", "sh", "-c", put) == 0

    def outside(self, port: int, *, tls: bool = False, count: int = 6) -> list[str]:
        words = [INSIDE_ADDRESS, str(port), "tls" if tls else "plain", str(count)]
        return self.sandbox.outside("python3", "-c", GET, *words).stdout.splitlines()

    def inside(self, guest: str, name: str, port: int) -> list[str]:
        words = f"{name} {port} plain 2"
        text = ("exec", guest, "--", "python3", "-c", GET, *words.split())
        return self.red.ok(*text).out.splitlines()

    def processes(self) -> list[int]:
        """All HAProxies in the sandbox, without those that have ended but nobody has asked about."""
        found, here = [], Path(f"/proc/{self.sandbox.inside_pid}/ns/pid").readlink()
        for path in Path("/proc").glob("[0-9]*"):
            try:
                _, _, rest = (path / "stat").read_text().partition("(haproxy) ")
                is_one = rest and rest[0] != "Z"
                if is_one and (path / "ns/pid").readlink() == here:
                    found.append(int(path.name))
            except OSError:
                continue
        return found

    def shown(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = self.red.ok("lb", "show", name, "--json").json
        return found

    def states(self, name: str) -> dict[str, str]:
        return {each["instance"]: each["state"] for each in self.shown(name)["backends"]}


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with engine_sandbox("balancers") as sandbox:
        yield sandbox


@pytest.fixture(scope="module")
def stage(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    red = Tenant(tmp_path_factory.mktemp("balancers") / "home", sandbox)
    try:
        red.ok("up")
        yield Stage(sandbox, red)
    finally:
        red.run("purge", "--yes")


def guests(answers: list[str]) -> set[str]:
    return {each.split()[0] for each in answers}


def test_the_life_of_balancers(stage: Stage, tmp_path: Path) -> None:
    red = stage.red
    options = ("--to-port", "8080", "--protocol", "http", "--check", "http:/health", "--interval", "2")
    made = red.ok(
        "lb", "create", "web", "--port", "80", "--to", "w1", "--to", "w2", *options, "--publish", "--json"
    ).json
    port = made["published_port"]

    def both_are_up() -> None:
        assert set(stage.states("web").values()) == {"up"}

    eventually(both_are_up)
    eventually(lambda: check(guests(stage.outside(port)), {"w1", "w2"}))
    assert {each.split()[1] for each in stage.outside(port)} == {made["address"]}
    assert guests(stage.inside("w1", "web.lb.default.internal", 80)) <= {"w1", "w2"}
    check_tls(stage, tmp_path)
    check_dying_backend(stage, port)
    check_live_change(stage, port)
    check_restarts(stage, port)
    check_refusals(stage)
    assert "tera_balancer_backends_up" in metrics(red)
    red.ok("lb", "delete", "web", "--yes")
    red.ok("lb", "delete", "safe", "--yes")
    eventually(lambda: check(red.ok("lb", "list", "--json").json, []))
    assert stage.processes() == []
    assert guests(stage.outside(port, count=1)) == {"failed"}


def check(found: object, wanted: object) -> None:
    assert found == wanted


def check_tls(stage: Stage, tmp_path: Path) -> None:
    """TLS with the given certificate, by label. A key that does not fit is refused and nothing is left."""
    key, other = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    files = {"crt": self_signed(key, now=datetime.now(UTC)), "key": pem_of(key), "bad": pem_of(other)}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    words = (
        "lb",
        "create",
        "safe",
        "--port",
        "443",
        "--to-port",
        "8080",
        "--to",
        "label=app=web",
        "--publish",
    )
    refused = stage.red.fails(*words, "--certificate", tmp_path / "crt", "--key", tmp_path / "bad")
    assert (refused.code, "does not match the key" in refused.err) == (2, True)
    made = stage.red.ok(*words, "--certificate", tmp_path / "crt", "--key", tmp_path / "key", "--json").json
    assert made["tls"]
    assert "PRIVATE" not in json.dumps(made)
    eventually(lambda: check(guests(stage.outside(made["published_port"], tls=True)), {"w1", "w2"}))
    script = f"import ssl; print(ssl.get_server_certificate(('{INSIDE_ADDRESS}', {made['published_port']})))"
    served = stage.sandbox.outside("python3", "-c", script).stdout
    assert ssl.PEM_cert_to_DER_cert(served.strip()) == ssl.PEM_cert_to_DER_cert(files["crt"].strip())
    database = (stage.red.home / "cloud" / "cloud.db").read_bytes()
    assert b"PRIVATE KEY" not in database, "the key is stored encrypted"


def check_dying_backend(stage: Stage, port: int) -> None:
    """Requests never fail while a backend is killed."""
    asking = subprocess.Popen(
        ["nsenter", f"--target={stage.sandbox.outside_pid}", "--net", "--", "python3", "-c", GET, INSIDE_ADDRESS,
         str(port), "plain", "300"],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    stage.red.ok("stop", "w2", "--wait")
    answers = asking.communicate()[0].splitlines()
    assert guests(answers) <= {"w1", "w2"}, answers
    eventually(lambda: check(stage.states("web"), {"w1": "up", "w2": "down"}))
    assert guests(stage.outside(port)) == {"w1"}


def check_live_change(stage: Stage, port: int) -> None:
    """A connection that is open survives the removal and the addition of backends."""
    held = subprocess.Popen(
        ["nsenter", f"--target={stage.sandbox.outside_pid}", "--net", "--", "python3", "-c", HOLD, INSIDE_ADDRESS,
         str(port)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert held.stdout is not None
    assert held.stdout.readline() == "held\n"
    before = set(stage.processes())
    stage.red.ok("lb", "remove", "web", "w2")
    eventually(lambda: check(bool(set(stage.processes()) - before), True))
    assert guests(stage.outside(port)) == {"w1"}
    stage.red.ok("lb", "add", "web", "w2")
    assert "200 OK" in held.communicate("go\n")[0]


def check_restarts(stage: Stage, port: int) -> None:
    """Without a server and after `kill -9` of the server traffic goes on; a killed HAProxy comes back."""
    red = stage.red
    eventually(lambda: check(set(stage.states("web")), {"w1", "w2"}))
    eventually(lambda: check("unknown" in stage.states("web").values(), False))  # HAProxy knows both
    kill_server(red)
    assert guests(stage.outside(port)) == {"w1"}
    before = stage.processes()
    red.ok("up")
    eventually(lambda: check(stage.shown("web")["running"], True))
    assert set(stage.processes()) <= set(before), "a new server changes nothing that runs"
    for pid in stage.processes():
        os.kill(pid, signal.SIGKILL)
    eventually(lambda: check(guests(stage.outside(port)), {"w1"}))
    red.ok("down", "--keep-guests")
    assert guests(stage.outside(port)) == {"w1"}
    for pid in stage.processes():
        os.kill(pid, signal.SIGKILL)
    red.ok("up")
    eventually(lambda: check(guests(stage.outside(port)), {"w1"}))


def check_refusals(stage: Stage) -> None:
    red = stage.red
    made = red.ok("org", "create", "blue", "--owner", "me@blue", "--json").json
    blue = Tenant(red.home.parent.parent / "blue" / "home", stage.sandbox)
    connection = json.loads((red.home / "connection.json").read_text())
    blue.more |= {"TERA_SERVER": connection["server"], "TERA_KEY": made["key"]}
    ids = [each["id"] for each in red.ok("ps", "--json").json]
    for ref in ("w1", *ids):
        assert "There is no instance" in blue.fails("lb", "create", "mine", "--port", "80", "--to", ref).err
    for words in (
        ("--check", "http:/x\n  server evil 198.51.100.2:80"),
        ("--check", 'http:/" }'),
        ("--check", "http:/$HOME"),
        ("--to", "w1\nbind :22"),
        ("--interval", "0"),
        ("--publish-port", "22"),
    ):
        done = red.fails("lb", "create", "odd", "--port", "81", "--to", "w1", *words)
        assert done.code in (1, 2)
        assert "Traceback" not in done.err
    many = [word for n in range(70) for word in ("--to", f"x{n}")]
    assert red.fails("lb", "create", "odd", "--port", "81", *many).code in (1, 2)
    assert [each["name"] for each in red.ok("lb", "list", "--json").json] == ["safe", "web"]


def metrics(red: Tenant) -> str:
    connection = json.loads((red.home / "connection.json").read_text())
    words = [
        "curl",
        "-s",
        "-H",
        f"Authorization: Bearer {connection['key']}",
        f"{connection['server']}/metrics",
    ]
    enter = red.command("x")[: red.command("x").index("--") + 1]
    return subprocess.run([*enter, *words], capture_output=True, text=True, check=True).stdout
