"""Puts the console beside the API, on the same server: below `/console` the console answers, elsewhere the API."""

import asyncio
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final
from urllib.parse import urlsplit

from litestar.types import ASGIApp

from teraflock.api.addresses import source_of
from teraflock.api.asgi import WAITING_MAX, Application
from teraflock.api.asked import Asked
from teraflock.api.errors import status_of, told
from teraflock.api.gate import asked_of
from teraflock.api.limits import RateLimit
from teraflock.api.services import Services
from teraflock.api.shares import Turns
from teraflock.app.oidc.configured import joining_of, provider_of
from teraflock.app.sign_up import sign_up_of
from teraflock.app.wiring import Cloud
from teraflock.base.errors import Conflict, TeraflockError
from teraflock.console.asgi import Console
from teraflock.console.services import ConsoleServices
from teraflock.tenant.identity.service import IdentityService
from teraflock.tenant.lesson.service import LessonService

THREADS: Final = 8
TRIES_PER_MINUTE: Final = 10
"""Attempts to sign in, from one address and for one user name."""
SIGN_UPS_PER_HOUR: Final = 5
"""From one address."""
TAKEN_NAMES_PER_HOUR: Final = 5
"""How often one address learns that a user name is taken: who chooses one must be told, but nobody may list them."""
ANSWER_SECONDS_MAX: Final = 660.0  # longer than any route of the API takes


class InProcessApi:
    """Calls the API from a thread of the console, without a socket."""

    def __init__(self) -> None:
        self.app: ASGIApp | None = None
        self.loop: asyncio.AbstractEventLoop | None = None

    def __call__(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes, address: str
    ) -> tuple[int, bytes]:
        assert self.loop is not None, "a thread of the console runs only during a request"
        asking = self._asked(method, target, headers, body, address)
        return asyncio.run_coroutine_threadsafe(asking, self.loop).result(ANSWER_SECONDS_MAX)

    async def _asked(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes, address: str
    ) -> tuple[int, bytes]:
        assert self.app is not None
        parts = urlsplit(target)
        scope: dict[str, Any] = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "scheme": "http", "method": method,
            "root_path": "", "path": parts.path, "raw_path": parts.path.encode(),
            "query_string": parts.query.encode(), "client": (address, 0), "server": ("console", 0), "state": {},
            "headers": [(name.encode(), value.encode("latin-1")) for name, value in headers.items()],
            "tera_asked": Asked(os.urandom(9).hex(), method, parts.path, address),
        }  # fmt: skip
        got: list[Any] = []
        sent = False

        async def receive() -> Any:
            nonlocal sent
            if sent:
                await asyncio.Event().wait()  # the client stays until the response is complete
            sent = True
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Any) -> None:
            got.append(message)

        await self.app(scope, receive, send)  # type: ignore[arg-type]  # a scope of Litestar has more
        return got[0]["status"], b"".join(part.get("body", b"") for part in got[1:])


class ConsoleLimits:
    """Buckets for requests without a session, and for attempts to sign in."""

    def __init__(self, services: Services, *, is_limited: bool) -> None:
        self._rates = services.request_rates
        tries = TRIES_PER_MINUTE if is_limited else 0
        self._by_address = RateLimit(tries / 60, tries, services.seconds, "to sign in from this address")
        sign_ups = SIGN_UPS_PER_HOUR if is_limited else 0
        self._sign_ups = RateLimit(
            sign_ups / 3600, sign_ups, services.seconds, "to sign up from this address"
        )
        taken = TAKEN_NAMES_PER_HOUR if is_limited else 0
        self._taken = RateLimit(
            taken / 3600, taken, services.seconds, "to choose a user name from this address"
        )
        self._by_name = RateLimit(tries / 60, tries, services.seconds, "to sign in with this user name")

    def visits(self, address: str) -> None:
        self._rates.asks_openly(source_of(address))

    def tries(self, address: str, user_name: str) -> None:
        self._by_address.take(source_of(address))
        if user_name:
            self._by_name.take(user_name.lower())

    def entered(self, address: str, *, requests: int = 1) -> None:
        self._by_address.give_back(source_of(address), requests)

    def signs_up(self, address: str) -> None:
        self._sign_ups.take(source_of(address))

    @contextmanager
    def chooses_name(self, address: str) -> Iterator[None]:
        self._taken.take(source_of(address))
        try:
            yield
        except Conflict:
            raise
        except BaseException:
            self._taken.give_back(source_of(address))
            raise
        self._taken.give_back(source_of(address))


def identities_of(cloud: Cloud) -> IdentityService | None:
    """Sign-in by the identity provider of the settings. None: there is none."""
    provider, joining = provider_of(cloud.settings, cloud.clock), joining_of(cloud.settings)
    if provider is None:
        return None
    sessions = cloud.services.nouns.sessions
    return IdentityService(cloud.database, cloud.clock, os.urandom, sessions, provider, cloud.vault, joining)


def application_with_console(cloud: Cloud) -> Application:
    services, api = cloud.services, InProcessApi()

    def failed(error: Exception, scope: Any) -> tuple[int, TeraflockError]:
        public = told(error, asked_of(scope), services.log)
        return status_of(public), public

    console = Console(
        ConsoleServices(
            tenants=services.nouns.tenants,
            sessions=services.nouns.sessions,
            identities=identities_of(cloud),
            sign_up=sign_up_of(cloud),
            lessons=LessonService(cloud.database, cloud.clock),
            clock=services.clock,
            news=services.news.current,
            reality=services.reality,
            ask=api,
            api=lambda *words: api.app(*words),  # type: ignore[misc]
            failed=failed,
            terminals=cloud.terminals,
            limits=ConsoleLimits(services, is_limited=bool(cloud.settings.rate_per_second)),
            turns=Turns(THREADS // 2, WAITING_MAX),
            random_bytes=os.urandom,
            body_bytes_max=services.bounds.body_bytes_max,
            threads=THREADS,
        )
    )

    def beside(litestar: ASGIApp) -> ASGIApp:
        api.app = litestar

        async def serve(scope: Any, receive: Any, send: Any) -> None:
            if scope["type"] == "http" and console.owns(scope["path"]):
                api.loop = asyncio.get_running_loop()
                await console(scope, receive, send)
            else:
                await litestar(scope, receive, send)

        return serve

    application = Application(services, around=beside)
    application.streams_beside.append(cloud.terminals.close)
    application.closes_beside.append(console.close)
    return application
