"""Errors as the API has them: RFC 9457, with our stable code and the next step to take."""

import msgspec


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    type: str
    """`https://…`-less on purpose: `about:blank#CODE` names the code and leads nowhere that may vanish."""
    title: str
    status: int
    code: str
    detail: str
    hint: str = ""
    request_id: str = ""
