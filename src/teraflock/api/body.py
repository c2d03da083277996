"""Read a request body up to a limit."""

from litestar.types import Receive

from teraflock.api.errors import MalformedRequest


async def read_body(receive: Receive, bytes_max: int, unread_max: int) -> bytes | None:
    """The body, or None if it is larger than `bytes_max`. Then up to `unread_max` more is read and dropped."""
    parts: list[bytes] = []
    size = 0
    while size <= unread_max:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise MalformedRequest("The request was interrupted", hint="Send it again")
        part: bytes = message.get("body", b"")  # type: ignore[assignment]  # of an `http.request`
        size += len(part)
        if size <= bytes_max:
            parts.append(part)
        else:
            parts.clear()
        if not message.get("more_body", False):
            break
    return b"".join(parts) if size <= bytes_max else None
