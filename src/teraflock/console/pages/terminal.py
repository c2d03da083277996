"""The terminal of an instance: output as a stream, input and size as small requests of the same session.

A stream names the place where it continues, so a broken connection loses nothing. The shell ends with the session and
with the permission.
"""

import asyncio
import base64
import binascii
import logging
from collections.abc import AsyncGenerator, Mapping
from typing import Any, Final

import msgspec

from teraflock.base.errors import BadInput, Forbidden, NotAuthenticated, NotFound, TeraflockError
from teraflock.console.answer import Answer, Streamed
from teraflock.console.call import PageCall
from teraflock.console.page import Pages
from teraflock.instance.terminal.model import OpenTerminal
from teraflock.instance.terminal.service import INPUT_BYTES_MAX
from teraflock.tenant.admission import Scope
from teraflock.tenant.model import By
from teraflock.tenant.rules import Permission

LOG: Final = logging.getLogger("teraflock.console")
pages = Pages()
OF_ONE: Final = "/projects/{project}/instances/{instance}"
ENTER: Final[Mapping[str, Any]] = {"scope": Scope.PROJECT, "may": Permission.INSTANCE_ENTER}
CHECK_SECONDS: Final = 5.0
"""How often a stream asks whether its session and its permission still hold, however much is written."""
JSON: Final = "application/json"


@pages.get(f"{OF_ONE}/terminal", **ENTER)
def show_terminal(call: PageCall) -> Answer:
    """The page with the terminal. xterm.js adds its own styles, which need a nonce."""
    instance = call.client.instances.get(call.path["instance"])
    nonce = call.services.random_bytes(16).hex()
    return call.page("instances/terminal.html", section="instances", instance=instance, nonce=nonce)


@pages.post(f"{OF_ONE}/terminals", long=True, **ENTER)
def open_terminal(call: PageCall) -> Answer:
    """Open a shell."""
    opened = call.services.terminals.open(
        _by(call), call.path["instance"],
        columns=call.form.number("columns") or 80, rows=call.form.number("rows") or 24,
    )  # fmt: skip
    return Answer(body=msgspec.json.encode({"id": opened.id}), media_type=JSON)


@pages.get(f"{OF_ONE}/terminals/{{terminal}}/output", stream=True, **ENTER)
def read_terminal(call: PageCall) -> Streamed:
    """What the shell writes, from a place on."""
    terminal = call.services.terminals.get_to_read(_by(call), call.path["terminal"])
    place = call.request.query.number("from") or 0
    return Streamed(pieces=lambda: _followed(call, terminal, place), media_type="application/octet-stream")


@pages.post(f"{OF_ONE}/terminals/{{terminal}}/input", **ENTER)
def write_terminal(call: PageCall) -> Answer:
    """Type."""
    try:
        content = base64.b64decode(call.form.text("data").replace(" ", "+"), validate=True)
    except (binascii.Error, ValueError):
        raise BadInput("The input is not base64", hint="Reload the page") from None
    if len(content) > INPUT_BYTES_MAX:
        raise BadInput(f"More than {INPUT_BYTES_MAX:,} bytes at once", hint="Paste less at a time")
    _terminal(call).type(content)
    return Answer(status=204)


@pages.post(f"{OF_ONE}/terminals/{{terminal}}/size", **ENTER)
def resize_terminal(call: PageCall) -> Answer:
    """Change the number of columns and rows."""
    columns, rows = call.form.number("columns") or 80, call.form.number("rows") or 24
    _terminal(call).engine.resize(min(columns, 1000), min(rows, 1000))
    return Answer(status=204)


def _by(call: PageCall) -> By:
    return By(actor=call.actor, project=call.project)


def _terminal(call: PageCall) -> OpenTerminal:
    return call.services.terminals.get(_by(call), call.path["terminal"])


async def _followed(call: PageCall, terminal: OpenTerminal, place: int) -> AsyncGenerator[bytes, None]:
    loop, more, refused = asyncio.get_running_loop(), asyncio.Event(), asyncio.Event()
    service = call.services.terminals
    unwatch = terminal.watch(lambda: loop.call_soon_threadsafe(more.set))
    service.enter(terminal)
    # A task of its own, because a browser that stops reading keeps this generator at `yield`.
    checking = asyncio.create_task(_end_when_refused(call, terminal, refused))
    try:
        while not refused.is_set():
            more.clear()
            place, content = terminal.take(place)
            if content:
                yield content
            elif terminal.ended:
                return
            else:
                await more.wait()
    finally:
        checking.cancel()
        unwatch()
        service.leave(terminal)


async def _end_when_refused(call: PageCall, terminal: OpenTerminal, refused: asyncio.Event) -> None:
    """End the shell when the session or the permission no longer holds, or when that cannot be found out."""
    try:
        while await asyncio.to_thread(_still_may, call):
            await asyncio.sleep(CHECK_SECONDS)
    except Exception:
        LOG.exception("the permission of a terminal cannot be checked")
    await asyncio.to_thread(terminal.end)  # first: what ends the stream cancels this task
    refused.set()


def _still_may(call: PageCall) -> bool:
    try:
        tenants = call.services.tenants
        tenants.require(tenants.authenticate(call.secret), Permission.INSTANCE_ENTER, call.project)
    except (NotAuthenticated, Forbidden, NotFound):
        return False
    except TeraflockError:  # the database does not answer now: ask again
        return True
    return True
