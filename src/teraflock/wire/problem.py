"""Errors on the wire: RFC 9457, with a stable code and the next step."""

import msgspec


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    type: str
    """`about:blank#CODE`. It is not a web address on purpose: such an address could disappear."""
    title: str
    status: int
    code: str
    detail: str
    hint: str = ""
    request_id: str = ""
