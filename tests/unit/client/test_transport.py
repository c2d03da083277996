"""The client with a scripted server that answers, breaks off, hangs up, or sends wrong data."""

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import msgspec
import pytest

from teraflock.base.errors import (
    BadInput,
    Conflict,
    Forbidden,
    NotAuthenticated,
    NotFound,
    QuotaReached,
    TeraflockError,
    TooMany,
    Unavailable,
)
from teraflock.client import Client
from teraflock.client.errors import NoAnswer, error_of
from teraflock.client.transport import path_of
from teraflock.wire.instance import LaunchRequest
from teraflock.wire.problem import Problem


class Told:
    """What the server does with each request. The last action repeats."""

    def __init__(self) -> None:
        self.acts: list[Callable[[BaseHTTPRequestHandler], None]] = []
        self.seen: list[tuple[str, str, dict[str, str], bytes]] = []

    def next(self) -> Callable[[BaseHTTPRequestHandler], None]:
        return self.acts.pop(0) if len(self.acts) > 1 else self.acts[0]


def answer(
    status: int, body: bytes, media: str = "application/json"
) -> Callable[[BaseHTTPRequestHandler], None]:
    def act(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        handler.send_header("Content-Type", media)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    return act


def break_off(handler: BaseHTTPRequestHandler) -> None:
    handler.close_connection = True
    handler.connection.close()


def problem(status: int, code: str, sentence: str = "A sentence", hint: str = "A hint") -> bytes:
    return msgspec.json.encode(
        Problem(
            type="about:blank",
            title="x",
            status=status,
            code=code,
            detail=sentence,
            hint=hint,
            request_id="r",
        )
    )


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture
def server(told: Told) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _act(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            told.seen.append((self.command, self.path, dict(self.headers), self.rfile.read(length)))
            told.next()(self)

        do_GET = do_POST = do_DELETE = do_PUT = _act  # noqa: N815 -- the names are http.server's

        def log_message(self, *_: object) -> None:
            return

        def handle(self) -> None:
            try:
                super().handle()
            except (OSError, ValueError):
                return  # scripted to break off

        def finish(self) -> None:
            try:
                super().finish()
            except (OSError, ValueError):
                return

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.daemon_threads = True
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{http.server_port}"
    http.shutdown()
    thread.join()
    http.server_close()


@pytest.fixture
def client(server: str) -> Iterator[Client]:
    with Client(server, "key", pause=lambda _: None, random_bytes=lambda n: bytes(n)) as client:
        yield client


WHO = b"""{"member_id":"m","member_name":"me","organisation_id":"o","organisation_name":"acme","is_operator":false,
"roles":{"":"owner"},"key_id":"k","a_field_of_next_year":[1,2,{"x":3}]}"""


def test_unknown_response_fields_are_ignored(client: Client, told: Told) -> None:
    told.acts = [answer(200, WHO)]
    assert client.whoami().member_name == "me"
    assert told.seen[0][2]["Authorization"] == "Bearer key"


@pytest.mark.parametrize("failures", [1, 3])
def test_reads_are_retried_if_the_server_fails(client: Client, told: Told, failures: int) -> None:
    told.acts = [answer(503, problem(503, "engine_down"))] * (failures - 1) + [break_off, answer(200, WHO)]
    assert client.whoami().key_id == "k"


def test_retries_are_bounded(client: Client, told: Told) -> None:
    told.acts = [answer(503, problem(503, "storage_failed"))]
    with pytest.raises(TeraflockError) as failed:
        client.whoami()
    assert failed.value.code == "storage_failed"
    assert len(told.seen) == 4


def test_create_is_retried_with_the_same_key(client: Client, told: Told) -> None:
    told.acts = [break_off, answer(503, problem(503, "unavailable")), answer(202, b'{"items":[]}')]
    client.instances.launch(LaunchRequest(name="web"))
    keys = {headers["Idempotency-Key"] for _, _, headers, _ in told.seen}
    assert len(told.seen) == 3
    assert len(keys) == 1
    assert {body for *_, body in told.seen} == {told.seen[0][3]}


def test_unsafe_requests_are_not_retried(client: Client, told: Told) -> None:
    from teraflock.wire.instance import ExecRequest

    told.acts = [break_off]
    with pytest.raises(NoAnswer):
        client.instances.exec("web", ExecRequest(command=("rm", "-rf", "/data")))
    assert len(told.seen) == 1


def test_project_is_sent_with_every_request(server: str, told: Told) -> None:
    told.acts = [answer(200, b'{"items":[],"next":null}')]
    with Client(server, "key", project="lab & co") as client:
        client.instances.page(limit=3)
    assert told.seen[0][1] == "/v1/instances?project=lab+%26+co&limit=3"


def test_names_stay_one_path_segment(client: Client, told: Told) -> None:
    told.acts = [answer(404, problem(404, "not_found"))]
    for name in ("a/b", "../keys", "a?b=c", "ä", "a#b"):
        with pytest.raises(NotFound):
            client.instances.get(name)
        assert told.seen[-1][1].count("/") == 3, told.seen[-1]
    for name in ("", ".", ".."):
        with pytest.raises(BadInput):
            path_of("instances", name)


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (401, "not_authenticated", NotAuthenticated),
        (403, "forbidden", Forbidden),
        (404, "not_found", NotFound),
        (409, "conflict", Conflict),
        (409, "quota_reached", QuotaReached),
        (422, "bad_input", BadInput),
        (400, "malformed_request", BadInput),
        (429, "too_many", TooMany),
        (503, "a_code_of_next_year", Unavailable),
        (409, "another_code_of_next_year", Conflict),
        (500, "internal_error", TeraflockError),
    ],
)
def test_problem_becomes_the_original_error(status: int, code: str, kind: type[TeraflockError]) -> None:
    error = error_of(status, problem(status, code))
    assert isinstance(error, kind)
    assert (error.code, error.sentence, error.hint) == (code, "A sentence", "A hint")
    assert error.exit_code == kind.exit_code


def test_error_without_a_problem_body_is_reported(client: Client, told: Told) -> None:
    told.acts = [answer(502, b"<html>Bad Gateway</html>", "text/html")]
    with pytest.raises(Unavailable, match="502"):
        client.whoami()
    told.acts = [answer(200, b"<html>Hello</html>", "text/html")]
    with pytest.raises(NoAnswer, match="does not understand"):
        client.whoami()


def test_unreachable_server_is_reported() -> None:
    client = Client("http://127.0.0.1:1", "key", pause=lambda _: None)
    with pytest.raises(NoAnswer, match="cannot be reached") as failed:
        client.health()
    assert failed.value.hint
    for wrong in ("127.0.0.1:8372", "ftp://x", "http://", "http://h:port", "http://h/v1"):
        with pytest.raises(BadInput, match="is not the address"):
            Client(wrong, "key")


def test_pages_are_read_to_their_end(client: Client, told: Told) -> None:
    def page(ids: list[str], after: str | None) -> Callable[[BaseHTTPRequestHandler], None]:
        items = [
            {
                "id": id,
                "name": "n",
                "organisation_id": "o",
                "quota": {},
                "subnet": "",
                "created_at": "2026-01-01T00:00:00Z",
            }
            for id in ids
        ]
        return answer(200, msgspec.json.encode({"items": items, "next": after}))

    told.acts = [page(["a", "b"], "b"), page(["c"], None)]
    assert [project.id for project in client.projects.list()] == ["a", "b", "c"]
    assert "after=b" in told.seen[1][1]


def sse(*events: tuple[str, str]) -> Callable[[BaseHTTPRequestHandler], None]:
    """A stream that sends these events and then breaks off."""

    def act(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream")
        handler.end_headers()
        handler.wfile.write(b"retry: 1000\n: following\n\n")
        for id, kind in events:
            data = msgspec.json.encode(
                {"id": id, "at": "2026-01-01T00:00:00Z", "kind": kind, "subject": "s", "details": {}}
            )
            handler.wfile.write(b"id: %s\nevent: %s\ndata: %s\n\n" % (id.encode(), kind.encode(), data))
        handler.close_connection = True

    return act


def test_broken_stream_resumes_without_duplicates(client: Client, told: Told) -> None:
    told.acts = [sse(("e1", "a"), ("e2", "b")), break_off, sse(("e2", "b"), ("e3", "c")), sse(("e4", "d"))]
    came = []
    for event in client.events.follow():
        came.append(event.id)
        if event.id == "e4":
            break
    assert came == ["e1", "e2", "e3", "e4"]
    assert [headers.get("Last-Event-ID") for _, _, headers, _ in told.seen] == [None, "e2", "e2", "e3"]


def test_stream_retries_are_bounded(client: Client, told: Told) -> None:
    told.acts = [break_off]
    with pytest.raises(Unavailable):
        next(client.events.follow())
    assert len(told.seen) == 5


def test_refused_stream_is_not_retried(client: Client, told: Told) -> None:
    told.acts = [answer(403, problem(403, "forbidden"))]
    with pytest.raises(Forbidden):
        next(client.events.follow())
    assert len(told.seen) == 1
