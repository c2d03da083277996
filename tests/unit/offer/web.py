"""A loopback web server that behaves or misbehaves as a test requires."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread

Answer = Callable[[BaseHTTPRequestHandler], None]


class Web:
    """Serves `pages` by path. Records the path and headers of each request in `asked`."""

    def __init__(self) -> None:
        self.pages: dict[str, Answer] = {}
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.ended = Event()
        """Set when the test is over, so that silent handlers can return."""
        web = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                web.asked.append((self.path, dict(self.headers.items())))
                web.pages.get(self.path, status(404))(self)
                self.close_connection = True

            def log_message(self, format: str, *arguments: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def at(self, path: str) -> str:
        return f"http://127.0.0.1:{self._server.server_port}{path}"

    def paths_asked(self) -> list[str]:
        return [path for path, _ in self.asked]

    def close(self) -> None:
        self.ended.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    # --- answers ---------------------------------------------------------------------------------------------------

    def silent(self, request: BaseHTTPRequestHandler) -> None:
        """Accept the request and send nothing."""
        self.ended.wait(10)


@contextmanager
def web_server() -> Iterator[Web]:
    web = Web()
    try:
        yield web
    finally:
        web.close()


def body(content: bytes, **headers: str) -> Answer:
    """Send the content, or 304 if the request has the same ETag or date."""

    def answer(request: BaseHTTPRequestHandler) -> None:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if "If-None-Match" in request.headers:  # then the date is ignored
            unchanged = request.headers["If-None-Match"] == sent.get("ETag")
        else:
            unchanged = request.headers.get("If-Modified-Since", "") == sent.get("Last-Modified")
        request.send_response(304 if unchanged else 200)
        for name, value in sent.items():
            request.send_header(name, value)
        if not unchanged:
            request.send_header("Content-Length", str(len(content)))
        request.end_headers()
        if not unchanged:
            request.wfile.write(content)

    return answer


def status(code: int) -> Answer:
    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_response(code)
        request.send_header("Content-Length", "0")
        request.end_headers()

    return answer


def cut_short(content: bytes, length: int) -> Answer:
    """Announce `length` bytes, send `content` and close the connection."""

    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.send_header("Content-Length", str(length))
        request.end_headers()
        request.wfile.write(content)

    return answer


def chunked(content: bytes, *, whole: bool) -> Answer:
    """Send one chunk, with or without the end of the message."""

    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.send_header("Transfer-Encoding", "chunked")
        request.end_headers()
        request.wfile.write(b"%x\r\n%s\r\n" % (len(content), content))
        if whole:
            request.wfile.write(b"0\r\n\r\n")

    return answer


def redirect(to: str) -> Answer:
    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_response(302)
        request.send_header("Location", to)
        request.send_header("Content-Length", "0")
        request.end_headers()

    return answer
