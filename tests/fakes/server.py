"""Serves a fake cloud over HTTP on this machine, for clients that need an address."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qsl, urlsplit

from tests.fakes.base import FakeCloud


class LocalServer:
    """An HTTP server on this machine, as long as its block runs."""

    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class FakeServer(LocalServer):
    def __init__(self, fake: FakeCloud, *, host: str = "", prefix: str = "") -> None:
        """`host`: the name that requests are for, where it says the region. `prefix`: before all paths."""
        super().__init__(_handler(fake, host, prefix))


def _handler(fake: FakeCloud, host: str, prefix: str) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            parts = urlsplit(self.path)
            length = int(self.headers.get("Content-Length") or 0)
            content = self.rfile.read(length) if length else None
            query = dict(parse_qsl(parts.query))
            signature = {"Authorization": self.headers.get("Authorization", "")}  # whatever its case
            asked = {**self.headers, **signature, **({"Host": host} if host else {})}
            status, headers, body = fake.answer(self.command, prefix + parts.path, query, asked, content)
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = _answer  # noqa: N815

        def log_message(self, format: str, *words: Any) -> None:
            return

    return Handler
