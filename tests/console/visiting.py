"""A console in this process, without a socket: the server of tests/api with its pages."""

import asyncio
import html
import re
import shutil
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import msgspec
from tests.api.asking import SETTINGS, ApiServer

from teraflock.app.console import application_with_console
from teraflock.app.settings import Settings
from teraflock.console import asgi
from teraflock.console.assets import Assets
from teraflock.console.cookies import csrf_token
from teraflock.tenant.session.model import Browser

HOST = "console.test"

asgi.Assets = cache(Assets)  # type: ignore[attr-defined,assignment]  # they never change, and compressing them takes 50 ms


class Visited(msgspec.Struct, frozen=True, kw_only=True):
    status: int
    headers: list[tuple[str, str]]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def words(self) -> str:
        """What a reader sees, without tags."""
        return html.unescape(re.sub(r"<[^>]*>", " ", self.text))

    def header(self, name: str) -> str:
        return next((value for each, value in self.headers if each == name), "")

    @property
    def cookies(self) -> dict[str, str]:
        pairs = [
            value.partition(";")[0].partition("=") for name, value in self.headers if name == "set-cookie"
        ]
        return {name: value for name, _, value in pairs}


class ConsoleServer(ApiServer):
    def __init__(self, home: Path, settings: Settings = SETTINGS) -> None:
        super().__init__(home, settings)
        self.application.close()
        self.application = application_with_console(self.cloud)

    def session(self, key: str) -> str:
        """The cookie of a new session that was opened with an API key."""
        browser = Browser("127.0.0.1", "a test")
        return self.cloud.services.nouns.sessions.sign_in_with_key(key, browser).secret

    def get(self, target: str, session: str = "", **headers: str) -> Visited:
        return self._visit("GET", target, session, b"", headers)

    def post(
        self,
        target: str,
        session: str = "",
        form: Mapping[str, str] | None = None,
        *,
        token: bool = True,
        headers: Mapping[str, str] | None = None,
    ) -> Visited:
        fields = dict(form or {})
        if session and token:
            fields.setdefault("csrf", csrf_token(session))
        sent = {
            "origin": f"http://{HOST}",
            "content-type": "application/x-www-form-urlencoded",
            **(headers or {}),
        }
        return self._visit("POST", target, session, urlencode(fields).encode(), sent)

    def _visit(
        self, method: str, target: str, session: str, content: bytes, headers: dict[str, str]
    ) -> Visited:
        parts = urlsplit(target)
        sent = {"host": HOST, **{name.replace("_", "-"): value for name, value in headers.items()}}
        if session:
            sent["cookie"] = "; ".join(filter(None, [sent.get("cookie", ""), f"tera_session={session}"]))
        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "scheme": "http", "method": method,
            "root_path": "", "path": parts.path, "raw_path": parts.path.encode(), "state": {},
            "query_string": parts.query.encode(), "client": ("127.0.0.1", 1), "server": (HOST, 80),
            "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in sent.items()],
        }  # fmt: skip
        return self._loop.run_until_complete(self._received(scope, content))

    async def _received(self, scope: Any, content: bytes) -> Visited:
        told: list[Any] = []
        asked = False

        async def receive() -> Any:
            nonlocal asked
            if asked:
                await asyncio.Event().wait()
            asked = True
            return {"type": "http.request", "body": content, "more_body": False}

        async def send(message: Any) -> None:
            told.append(message)

        await self.application.asgi(scope, receive, send)
        got = [(name.decode(), value.decode("latin-1")) for name, value in told[0]["headers"]]
        return Visited(
            status=told[0]["status"], headers=got, body=b"".join(part.get("body", b"") for part in told[1:])
        )


def copied_console(home: Path, target: Path, settings: Settings = SETTINGS) -> ConsoleServer:
    shutil.copytree(home, target)
    return ConsoleServer(target, settings)
