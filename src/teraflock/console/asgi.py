"""The console as an ASGI application: finds the page, checks the session, the token and the permission, and answers.

The order is always the same: page, session, permission, origin and token, body, work. So a form is read only for those
who may send it. Pages are rendered in threads, because they wait for the API.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final, TypeVar
from urllib.parse import quote

from teraflock.base.errors import BadInput, Forbidden, NotAuthenticated, NotFound, TeraflockError
from teraflock.console import cookies
from teraflock.console.answer import Answer, Forwarded, Streamed, redirect
from teraflock.console.assets import STATIC, Assets
from teraflock.console.call import PageCall
from teraflock.console.language import chosen, load_languages
from teraflock.console.page import PREFIX, ConsolePage
from teraflock.console.pages.all import PAGES
from teraflock.console.pages.sign_in import safe_next
from teraflock.console.render import Renderer
from teraflock.console.request import BrowserRequest, parse_form, request_of
from teraflock.console.sending import forward, send_answer, send_stream
from teraflock.console.services import ConsoleServices
from teraflock.tenant.admission import Scope, admitted_project
from teraflock.tenant.model import Actor, Project

T = TypeVar("T")
Answered = Answer | Streamed | Forwarded
REF_CHARACTERS_MAX: Final = 255
LONG_THREADS: Final = 32
_OPERATORS: Final = "operators"


class Console:
    def __init__(self, services: ConsoleServices, pages: Sequence[ConsolePage] = PAGES) -> None:
        self._services = services
        self._pages: dict[int, list[ConsolePage]] = defaultdict(list)
        """By the number of segments of their addresses."""
        for page in pages:
            self._pages[len(page.segments)].append(page)
        self._assets = Assets()
        self._renderer = Renderer(self._assets)
        self._languages = load_languages()
        self._threads = ThreadPoolExecutor(services.threads, "tera-console")
        self._long = ThreadPoolExecutor(LONG_THREADS, "tera-console-long")

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._long.shutdown(wait=False, cancel_futures=True)

    @staticmethod
    def owns(path: str) -> bool:
        """Whether a request for this path is for the console, not for the API."""
        return path == "/" or path == PREFIX or path.startswith(PREFIX + "/")

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        path, is_secure = scope["path"], scope["scheme"] == "https"
        if path.startswith(STATIC):
            scope["path_template"] = STATIC
            answer = self._assets.answer(path) or Answer(status=404)
            await send_answer(send, answer, is_secure=is_secure, is_head=scope["method"] == "HEAD")
            return
        try:
            answered = await self._answered(scope, receive)
        except Exception as error:
            answered = await self._in_thread(partial(self._error_page, error, scope))
        if isinstance(answered, Forwarded):
            secret = request_of(scope).cookies.get(cookies.SESSION, "")
            await forward(self._services.api, answered.target, secret, scope, receive, send)
        elif isinstance(answered, Streamed):
            await send_stream(receive, send, answered)
        else:
            await send_answer(send, answered, is_secure=is_secure, is_head=scope["method"] == "HEAD")

    async def _answered(self, scope: Any, receive: Any) -> Answered:
        request = request_of(scope)
        if request.path in ("/", PREFIX):
            return redirect(f"{PREFIX}/")
        page, parameters = self._found(request)
        scope["path_template"] = PREFIX + page.path
        if page.scope == Scope.PUBLIC:
            self._services.limits.visits(request.address)
            return await self._done(page, self._call(request, parameters), scope, receive)
        secret = request.cookies.get(cookies.SESSION, "")
        try:
            actor, project = await self._in_thread(partial(self._admitted, page, secret, parameters))
        except NotAuthenticated:
            return self._to_sign_in(request)
        scope["tera_asked"].actor = actor
        call = self._call(request, parameters, actor, secret, project)
        tenant = _OPERATORS if actor.is_operator else actor.organisation_id
        await self._services.turns.enter(tenant)
        try:
            return await self._done(page, call, scope, receive)
        finally:
            self._services.turns.leave(tenant)

    def _found(self, request: BrowserRequest) -> tuple[ConsolePage, dict[str, str]]:
        method = "GET" if request.method == "HEAD" else request.method
        others = False
        for page, found in self._with_address(request.path):
            if page.method == method:
                if any(len(each) > REF_CHARACTERS_MAX or not each.isprintable() for each in found.values()):
                    break
                return page, found
            others = True
        if others:
            raise BadInput(
                "This page cannot be opened this way", hint="Go back and use the button on the page"
            )
        raise NotFound("There is no such page", hint="Check the address, or start again from the list")

    def _with_address(self, path: str) -> Iterator[tuple[ConsolePage, dict[str, str]]]:
        """The pages that an address can mean, with its parameters. A slash at the end does not matter."""
        for segments in (path.split("/"), path.removesuffix("/").split("/")):
            for page in self._pages.get(len(segments), ()):
                if (found := page.found_in(segments)) is not None:
                    yield page, found

    def _admitted(
        self, page: ConsolePage, secret: str, parameters: Mapping[str, str]
    ) -> tuple[Actor, Project | None]:
        tenants = self._services.tenants
        actor = tenants.authenticate(secret)
        if page.may is None:
            return actor, None
        return actor, admitted_project(
            tenants.projects, actor, page.scope, page.may, parameters.get("project")
        )

    def _call(
        self,
        request: BrowserRequest,
        parameters: dict[str, str],
        actor: Actor | None = None,
        secret: str = "",
        project: Project | None = None,
    ) -> PageCall:
        code = chosen(request.cookies.get(cookies.LANGUAGE, ""), request.headers.get("accept-language", ""))
        return PageCall(
            self._services, self._renderer, request, self._languages[code],
            path=parameters, actor=actor, secret=secret, project=project,
        )  # fmt: skip

    async def _done(self, page: ConsolePage, call: PageCall, scope: Any, receive: Any) -> Answered:
        if page.method == "POST":
            call.form = parse_form(await self._body(call.request, receive))
            _check_form(call)
        threads = self._long if page.long else self._threads
        return await asyncio.get_running_loop().run_in_executor(threads, self._shown, page, call, scope)

    def _shown(self, page: ConsolePage, call: PageCall, scope: Any) -> Answered:
        try:
            answered: Answered = page.handler(call)
            return answered
        except TeraflockError as error:
            if page.on_error is None or (isinstance(error, NotAuthenticated) and call.secret):
                raise
            call.error = error
            call.status, _ = self._services.failed(error, scope)
            shown: Answer = page.on_error(call)
            return shown

    async def _body(self, request: BrowserRequest, receive: Any) -> bytes:
        content: bytes = b""
        limit = self._services.body_bytes_max
        if not request.headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
            raise BadInput("This is not a form", hint="Reload the page and try again")
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise BadInput("The form was interrupted", hint="Send it again")
            content += message.get("body", b"")
            if len(content) > limit:
                raise BadInput(f"The form is larger than {limit:,} bytes", hint="Shorten the longest field")
            if not message.get("more_body", False):
                return content

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def _to_sign_in(self, request: BrowserRequest) -> Answer:
        """Ask for a sign-in, and come back to the page afterwards."""
        is_page = request.method == "GET" and not request.is_part
        next = request.target if is_page else request.came_from
        to = f"{PREFIX}/sign-in" + (f"?next={quote(next)}" if safe_next(next) else "")
        gone = {cookies.SESSION: ""} if request.cookies.get(cookies.SESSION) else {}
        if request.is_part:
            return Answer(status=401, headers={"HX-Redirect": to}, cookies=gone)
        return redirect(to, cookies=gone)

    def _error_page(self, error: Exception, scope: Any) -> Answer:
        status, public = self._services.failed(error, scope)
        request = request_of({**scope, "query_string": b""})
        call = self._call(request, {})
        call.error, call.status = public, status
        return call.part("error_part.html") if request.is_part else call.page("error.html")


def _check_form(call: PageCall) -> None:
    """An action needs an origin that is this server, and with a session also its token."""
    headers = call.request.headers
    own = cookies.is_own_origin(
        headers.get("origin", ""), headers.get("host", ""), headers.get("sec-fetch-site", "")
    )
    given = headers.get("x-csrf-token") or call.form.text("csrf")
    if not own or (call.secret and not cookies.is_csrf_token(given, call.secret)):
        raise Forbidden(
            "This form was not sent from a page of this session",
            hint="Reload the page and send it again",
        )
