"""Sends answers: headers that hold for every page, cookies, streams, and streams of the API."""

import asyncio
from contextlib import aclosing, suppress
from typing import Any, Final

from teraflock.console.answer import HTML, Answer, Streamed
from teraflock.console.cookies import cookie_header

_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'{nonce}; img-src 'self' data:; font-src 'self';"
    " connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_OF_FILES: Final = b"default-src 'none'; frame-ancestors 'none'; sandbox"
_SAFE: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)


def headers_of(answer: Answer, *, is_secure: bool) -> list[tuple[bytes, bytes]]:
    headers = [
        *_SAFE,
        (b"content-type", answer.media_type.encode()),
        (b"content-length", b"%d" % len(answer.body)),
    ]
    if answer.media_type == HTML:
        nonce = f" 'nonce-{answer.nonce}'" if answer.nonce else ""
        headers.append((b"content-security-policy", _POLICY.format(nonce=nonce).encode()))
    headers += [(name.lower().encode(), value.encode("latin-1")) for name, value in answer.headers.items()]
    headers += [
        (b"set-cookie", cookie_header(name, value, secure=is_secure).encode("latin-1"))
        for name, value in answer.cookies.items()
    ]
    return headers


async def send_answer(send: Any, answer: Answer, *, is_secure: bool, is_head: bool = False) -> None:
    headers = headers_of(answer, is_secure=is_secure)
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if is_head else answer.body, "more_body": False})


async def send_stream(receive: Any, send: Any, stream: Streamed) -> None:
    """Send pieces until they end or the client leaves."""
    headers = [*_SAFE, (b"content-type", stream.media_type.encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    sending = asyncio.ensure_future(_send_pieces(send, stream))
    leaving = asyncio.ensure_future(_disconnected(receive))
    try:
        await asyncio.wait((sending, leaving), return_when=asyncio.FIRST_COMPLETED)
    finally:
        leaving.cancel()
        sending.cancel()
        with suppress(asyncio.CancelledError):
            await sending


async def _send_pieces(send: Any, stream: Streamed) -> None:
    async with aclosing(stream.pieces()) as pieces:
        async for piece in pieces:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _disconnected(receive: Any) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def forward(api: Any, target: str, secret: str, scope: Any, receive: Any, send: Any) -> None:
    """Let the API answer instead, with the session in place of a key. A file is saved, never shown as a page."""
    path, _, query = target.partition("?")
    inner = {
        **scope,
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [(b"authorization", f"Bearer {secret}".encode()), (b"accept", b"*/*")],
    }

    async def send_safely(message: Any) -> None:
        if message["type"] == "http.response.start":
            given = [*message["headers"], *_SAFE, (b"content-security-policy", _OF_FILES)]
            is_stream = any(
                name == b"content-type" and value.startswith(b"text/event-stream") for name, value in given
            )
            if message["status"] < 400 and not is_stream:
                given.append((b"content-disposition", b"attachment"))
            message = {**message, "headers": given}
        await send(message)

    await api(inner, receive, send_safely)
