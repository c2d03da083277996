"""A real server and clients that hold connections open: other clients still get responses.

Clients come from several addresses of the loopback network. Nothing here measures time: what must end is waited for.
"""

import http.client
import resource
import signal
import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from tests.story.api_server import SERVE, Server, running, tls_certificate

from teraflock.wire.instance import LaunchRequest
from teraflock.wire.organisation import OrganisationRequest

HALF = b"GET / HTTP/1.1\r\nHost: x\r\nX-a: "
SECONDS_MAX = 60.0  # long enough for a machine that is busy with other tests
SHORT_IDLE = """
import teraflock.app.http_server as server
Deadlines = server.Deadlines
server.Deadlines = lambda **more: Deadlines(**more, idle_seconds=1.0)
"""
FEW_FILES = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (400, 400));"


@pytest.fixture(autouse=True)
def many_files() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (before[1], before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@contextmanager
def half_open(
    server: Server, addresses: list[str], each: int, sends: bytes = HALF
) -> Iterator[list[socket.socket]]:
    """Connections that never finish their request headers."""
    with ExitStack() as kept:
        found = []
        for number in range(each * len(addresses)):
            source = (addresses[number % len(addresses)], 0)
            sock = socket.create_connection(("127.0.0.1", server.port), SECONDS_MAX, source_address=source)
            found.append(kept.enter_context(sock))
            _send(sock, sends)
        yield found


def _send(sock: socket.socket, data: bytes) -> None:
    try:
        sock.sendall(data)
    except OSError:
        return  # already refused


def is_closed(sock: socket.socket) -> bool:
    """Wait until the server has closed the connection."""
    try:
        while sock.recv(4096):
            continue
    except ConnectionResetError:
        return True
    return True


def is_open(sock: socket.socket) -> bool:
    sock.setblocking(False)
    try:
        return bool(sock.recv(4096))
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        sock.settimeout(SECONDS_MAX)


def asked(server: Server, source: str, path: str = "/v1/health") -> int:
    connection = http.client.HTTPConnection(
        "127.0.0.1", server.port, timeout=SECONDS_MAX, source_address=(source, 0)
    )
    try:
        headers = {"Authorization": f"Bearer {server.operator_key}"}
        connection.request("GET", path, headers=headers)
        return connection.getresponse().status
    finally:
        connection.close()


def log_of(server: Server) -> str:
    """The server's output, after it has ended."""
    assert server.process is not None
    server.process.send_signal(signal.SIGTERM)
    written = server.told()
    server.end()
    return written


def test_half_open_connections_do_not_block_others(tmp_path: Path) -> None:
    with running(tmp_path / "home", TERA_HEAD_SECONDS="3") as server:
        server.furnish()
        with half_open(server, ["127.0.0.1"], 3000) as held:
            for _ in range(10):
                assert asked(server, "127.0.0.2") == 200
                assert asked(server, "127.0.0.2", "/v1/whoami") == 200
                assert asked(server, "127.0.0.1") == 200, "and the address itself is let in"
            assert all(is_closed(sock) for sock in held)
        written = log_of(server)
        assert "connection from 127.0.0.1 closed: too many open connections" in written
        assert written.count("connection from 127.0.0.1") < 20


def test_full_server_closes_the_longest_idle_connection(tmp_path: Path) -> None:
    addresses = [f"127.0.1.{number}" for number in range(1, 31)]
    limits = {"TERA_CONNECTIONS_MAX": "100", "TERA_HEAD_SECONDS": "300"}
    with (
        running(tmp_path / "home", **limits) as server,
        half_open(server, addresses, 10) as held,
    ):
        for _ in range(20):
            assert asked(server, "127.0.0.2") == 200
        still_open = [sock for sock in held if is_open(sock)]
        assert 0 < len(still_open) <= 100
        assert set(still_open) <= set(held[-130:]), "the oldest made way"
        for sock in held:
            sock.close()
        assert "graceful shutdown exceeded" not in log_of(server), "no closed connection is waited for"


def test_loops_continue_when_all_connections_are_taken(tmp_path: Path) -> None:
    """Runs with few file descriptors: 'Too many open files' used to stop the loops."""
    server = Server(tmp_path / "home", TERA_HEAD_SECONDS="300")
    server.code = FEW_FILES + server.code
    server.start()
    try:
        server.furnish()
        with half_open(server, [f"127.0.2.{number}" for number in range(1, 61)], 10), server.client() as me:
            me.instances.launch(LaunchRequest(name="one"))
            assert me.instances.wait_until("one", "running").state == "running"
        written = log_of(server)
        assert "instead of 4096: this process may open only 400 files" in written
        assert "Too many open files" not in written
    finally:
        if server.process is not None:
            server.end()


def test_missing_bodies_and_endless_headers_time_out(tmp_path: Path) -> None:
    with running(tmp_path / "home", TERA_BODY_SECONDS="1", TERA_HEAD_SECONDS="300") as server:
        with socket.create_connection(("127.0.0.1", server.port), SECONDS_MAX) as sock:
            key = server.operator_key
            head = f"POST /v1/organisations HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n"
            sock.sendall(head.encode() + b"Content-Length: 10\r\n\r\n{")
            assert is_closed(sock)
        with socket.create_connection(("127.0.0.1", server.port), SECONDS_MAX) as sock:
            _send(sock, HALF + b"x" * 300_000)
            try:
                told = sock.recv(4096)
            except ConnectionResetError:
                told = b"HTTP/1.1 431"
            assert told.startswith(b"HTTP/1.1 431")
        assert asked(server, "127.0.0.1") == 200


def test_blank_lines_do_not_keep_a_connection_open(tmp_path: Path) -> None:
    """Bytes between requests that are not a request. uvicorn alone would reset its timer on them."""
    with (
        running(tmp_path / "home", code=SHORT_IDLE + SERVE) as server,
        socket.create_connection(("127.0.0.1", server.port), SECONDS_MAX) as sock,
    ):
        sock.sendall(b"GET /v1/health HTTP/1.1\r\nHost: x\r\n\r\n")
        assert sock.recv(4096).startswith(b"HTTP/1.1 200")
        sock.sendall(b"\r\n")
        assert is_closed(sock)


def test_unfinished_tls_handshakes_are_limited_and_time_out(tmp_path: Path) -> None:
    cert, key = tls_certificate(tmp_path)
    from teraflock.client import Client

    server = Server(
        tmp_path / "home",
        TERA_TLS_CERT=str(cert),
        TERA_TLS_KEY=str(key),
        TERA_CONNECTIONS_PER_ADDRESS="20",
        TERA_HEAD_SECONDS="2",
    )
    server.url = f"https://127.0.0.1:{server.port}"
    server.client = lambda *_, **__: Client(server.url, "", ca_file=str(cert))  # type: ignore[method-assign]
    server.start()
    try:
        with half_open(server, ["127.0.0.5"], 60, sends=b"") as silent:
            trusted = ssl.create_default_context(cafile=str(cert))
            raw = socket.create_connection(
                ("127.0.0.1", server.port), SECONDS_MAX, source_address=("127.0.0.6", 0)
            )
            with trusted.wrap_socket(raw, server_hostname="127.0.0.1") as sock:
                sock.sendall(b"GET /v1/health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                assert sock.recv(4096).startswith(b"HTTP/1.1 200")
            assert all(is_closed(sock) for sock in silent)
        for _ in range(50):
            with socket.create_connection(("127.0.0.1", server.port), SECONDS_MAX) as plain:
                _send(plain, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
                assert is_closed(plain)
        assert len(log_of(server).splitlines()) < 60, "failed handshakes do not fill the log"
    finally:
        if server.process is not None:
            server.end()


def test_odd_requests_do_not_fill_the_log(tmp_path: Path) -> None:
    with running(tmp_path / "home") as server:
        for _ in range(200):
            with socket.create_connection(("127.0.0.1", server.port), SECONDS_MAX) as sock:
                sock.sendall(b"\x00\x01 nonsense\r\n\r\n")
                assert sock.recv(4096).startswith(b"HTTP/1.1 400")
        lines = [line for line in log_of(server).splitlines() if "Invalid HTTP" in line]
        assert 2 <= len(lines) <= 10, lines
        assert "from 127.0.0.1" in lines[0]
        assert "more in" in lines[1]


def test_streams_of_one_organisation_leave_room_for_others(tmp_path: Path) -> None:
    with running(tmp_path / "home", TERA_STREAMS_PER_ORGANISATION="3") as server, ExitStack() as kept:
        keys = {}
        for name in ("red", "blue"):
            with server.client() as operator:
                request = OrganisationRequest(name=name, owner=f"head@{name}")
                keys[name] = operator.organisations.create(request).key
        for key, status in [(keys["red"], b"200")] * 3 + [(keys["red"], b"429"), (keys["blue"], b"200")]:
            stream = kept.enter_context(socket.create_connection(("127.0.0.1", server.port), SECONDS_MAX))
            stream.sendall(
                f"GET /v1/events/stream HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n\r\n".encode()
            )
            assert stream.recv(4096).startswith(b"HTTP/1.1 " + status)


def test_endless_pipelining_is_refused(tmp_path: Path) -> None:
    with (
        running(tmp_path / "home") as server,
        socket.create_connection(("127.0.0.1", server.port), SECONDS_MAX) as sock,
    ):
        _send(sock, b"GET /v1/health HTTP/1.1\r\nHost: x\r\n\r\n" * 4000)
        assert is_closed(sock)
        assert asked(server, "127.0.0.1") == 200


def test_a_body_without_a_key_is_not_read(tmp_path: Path) -> None:
    with (
        running(tmp_path / "home", TERA_BODY_SECONDS="300") as server,
        socket.create_connection(("127.0.0.1", server.port), SECONDS_MAX) as sock,
    ):
        sock.sendall(b"POST /v1/instances HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n{")
        assert sock.recv(4096).startswith(b"HTTP/1.1 401")


@pytest.mark.parametrize(("proxies", "seen"), [("", "127.0.0.3"), ("127.0.0.3", "192.0.2.7")])
def test_only_trusted_proxies_set_the_client_address(tmp_path: Path, proxies: str, seen: str) -> None:
    settings = {"TERA_TRUSTED_PROXIES": proxies, "TERA_ACCESS_LOG": "true"}
    with running(tmp_path / "home", **settings) as server:
        connection = http.client.HTTPConnection(
            "127.0.0.1", server.port, timeout=SECONDS_MAX, source_address=("127.0.0.3", 0)
        )
        connection.request("GET", "/v1/whoami", headers={"X-Forwarded-For": "10.0.0.1, 192.0.2.7"})
        assert connection.getresponse().status == 401
        connection.close()
        lines = (server.home / "cloud" / "access.log").read_text().splitlines()
        assert f"401 GET /v1/whoami from {seen}, request" in lines[-1]
