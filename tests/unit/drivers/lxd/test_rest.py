"""The REST client against a server that misbehaves on demand."""

import json
import socketserver
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teraflock.base.errors import TeraflockError
from teraflock.drivers.lxd import errors
from teraflock.drivers.lxd.errors import EngineMissing, EngineTaken
from teraflock.drivers.lxd.rest import LxdClient
from teraflock.drivers.lxd.websocket import BINARY, frame
from teraflock.instance.engine_errors import EngineBusy, EngineDown, EngineFailed, EngineRefused, NoRoom

Answer = Callable[["Handler"], None]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: "Server"

    def do_GET(self) -> None:
        self.server.asked.append(f"{self.command} {self.path}")
        self.body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.answer(self)

    do_POST = do_PUT = do_PATCH = do_DELETE = do_GET  # noqa: N815 as the base class has them

    def say(self, content: Any, status: int = 200) -> None:
        text = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def address_string(self) -> str:
        return ""

    def log_message(self, *_: object) -> None:
        pass


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    asked: list[str]
    answer: Answer


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(str(tmp_path / "socket"), Handler)
    server.asked = []
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def client(server: Server, tmp_path: Path) -> Iterator[LxdClient]:
    client = LxdClient(tmp_path / "socket", project="ours")
    yield client
    client.close()


def test_response_is_its_metadata_and_names_are_quoted(server: Server, client: LxdClient) -> None:
    server.answer = lambda handler: handler.say({"type": "sync", "metadata": {"a": 1}})
    assert client.get("instances", "../x?y=1", recursion=1) == {"a": 1}
    assert server.asked == ["GET /1.0/instances/..%2Fx%3Fy%3D1?project=ours&recursion=1"]


@pytest.mark.parametrize(
    "empty", [[], None], ids=["the name that LXD reports", "the name that Incus reports"]
)
def test_an_empty_list_is_a_list(server: Server, client: LxdClient, empty: object) -> None:
    server.answer = lambda handler: handler.say({"type": "sync", "metadata": empty})
    assert client.get("instances", recursion=1) == []


def test_which_engine_answers_is_asked_once(server: Server, client: LxdClient) -> None:
    told = {"type": "sync", "metadata": {"environment": {"server": "incus"}}}
    server.answer = lambda handler: handler.say(told)
    assert [client.server() for _ in range(3)] == ["incus"] * 3
    assert len(server.asked) == 1


def test_an_operation_is_waited_for_by_its_id(server: Server, client: LxdClient) -> None:
    def answer(handler: Handler) -> None:
        if handler.command == "POST":
            operation = {"id": "op-1", "status_code": 103}
            handler.say(
                {"type": "async", "operation": "/1.0/operations/op-1?project=x", "metadata": operation}, 202
            )
        else:
            handler.say(
                {"type": "sync", "metadata": {"id": "op-1", "status_code": 200, "metadata": {"b": 2}}}
            )

    server.answer = answer
    assert client.post("instances", body={}) == {"b": 2}
    assert server.asked[1].startswith("GET /1.0/operations/op-1/wait?project=ours&timeout=")


@pytest.mark.parametrize(
    ("status_code", "words", "error"),
    [
        (103, "", EngineBusy),
        (400, "Failed creating: No space left on device", NoRoom),
        (400, 'Instance is busy running a "create" operation', EngineBusy),
        (400, "Snapshot x/y does not exist", EngineMissing),
        (400, "Instance 'x' already exists", EngineTaken),
        (401, "Cancelled", EngineFailed),
        (400, 'exec: "dnsmasq": executable file not found in $PATH', EngineFailed),
    ],
)
def test_failed_operation_raises(
    server: Server, client: LxdClient, status_code: int, words: str, error: type[TeraflockError]
) -> None:
    operation = {"id": "op-1", "status_code": status_code, "err": words}
    server.answer = lambda handler: handler.say({"type": "sync", "metadata": operation})
    with pytest.raises(error) as told:
        client.wait("op-1")
    assert type(told.value) is error
    assert words not in told.value.sentence or not words, "the engine's message belongs only in the log"


@pytest.mark.parametrize(
    ("code", "error"), [(404, EngineMissing), (409, EngineTaken), (503, EngineDown), (400, EngineFailed)]
)
def test_status_codes_become_errors(
    server: Server, client: LxdClient, code: int, error: type[TeraflockError]
) -> None:
    server.answer = lambda handler: handler.say({"type": "error", "error": "x", "error_code": code}, code)
    for ask in (lambda: client.get("x"), lambda: client.get_bytes("x"), lambda: client.delete("x")):
        with pytest.raises(error):
            ask()


def test_missing_socket_raises_engine_down(tmp_path: Path) -> None:
    with pytest.raises(EngineDown):
        LxdClient(tmp_path / "nothing").get()


def test_broken_connection_raises_and_does_not_repeat_the_request(server: Server, client: LxdClient) -> None:
    def answer(handler: Handler) -> None:
        handler.close_connection = True
        handler.connection.close()

    server.answer = answer
    with pytest.raises(EngineDown):
        client.post("instances", body={"name": "once"})
    assert len(server.asked) == 1
    server.answer = lambda handler: handler.say({"type": "sync", "metadata": 1})
    assert client.get("x") == 1


def test_closed_connection_is_not_reused(server: Server, client: LxdClient) -> None:
    def answer(handler: Handler) -> None:
        handler.say({"type": "sync", "metadata": 1})
        handler.close_connection = True

    server.answer = answer
    for _ in range(5):
        assert client.get("x") == 1
    assert len(server.asked) == 5


def test_invalid_response_raises(server: Server, client: LxdClient) -> None:
    server.answer = lambda handler: handler.say(b"<html>", 200)
    with pytest.raises(EngineRefused):
        client.get("x")


def test_many_threads_share_a_client(server: Server, client: LxdClient) -> None:
    server.answer = lambda handler: handler.say({"type": "sync", "metadata": handler.path})
    wrong: list[str] = []

    def ask(number: int) -> None:
        for turn in range(20):
            if f"/t{number}-{turn}?" not in client.get(f"t{number}-{turn}"):
                wrong.append(f"{number}-{turn}")

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert len(server.asked) == 160


def test_file_is_sent_unchanged(server: Server, client: LxdClient, tmp_path: Path) -> None:
    content = bytes(range(256)) * 1000
    (tmp_path / "file").write_bytes(content)
    server.answer = lambda handler: handler.say({"type": "sync", "metadata": handler.body == content})
    assert client.post("images", body=tmp_path / "file", headers={"X-LXD-public": "0"}) is True


@given(code=st.integers(100, 599), words=st.text(max_size=60))
def test_every_engine_error_becomes_a_teraflock_error(code: int, words: str) -> None:
    told = errors.error_for("GET x", code, words)
    assert isinstance(told, TeraflockError)
    assert told.context["code"] == code if "code" in told.context else isinstance(told, EngineDown)


@given(content=st.binary(max_size=70_000), mask=st.binary(min_size=4, max_size=4))
def test_a_frame_can_be_read_again(content: bytes, mask: bytes) -> None:
    written = frame(content, BINARY, mask)
    assert written[0] == 0x82
    assert written[1] & 0x80, "clients must mask their frames"
    masked = written[-len(content) :] if content else b""
    assert bytes(byte ^ mask[place % 4] for place, byte in enumerate(masked)) == content
