"""How errors leave the API: one table from code to status, one form (RFC 9457), no traceback.

What holds:
- an answer says the code, the public sentence, the hint and the request's id; the private context goes to the log,
  with the address, the key, the method and the path (api/refusals.py bounds how many lines);
- a code without a row of its own takes the status of its nearest parent in the error tree;
- what nobody foresaw is `internal_error`, with its trace in the log under the same request id.
"""

import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import ClassVar, Final

import msgspec

from teraflock.api.asked import Asked, safe
from teraflock.api.refusals import RequestLog
from teraflock.base.errors import BadInput, Conflict, TeraflockError, Unavailable
from teraflock.wire.problem import Problem

STATUS_BY_CODE: Final[Mapping[str, int]] = {
    "malformed_request": 400,
    "not_authenticated": 401,
    "forbidden": 403,
    "not_found": 404,
    "method_not_allowed": 405,
    "conflict": 409,
    "refused": 409,
    "suspended": 409,
    "quota_reached": 409,
    "budget_reached": 409,
    "engine_refused": 409,
    "no_room": 409,
    "does_not_boot": 409,
    "over_quota": 409,
    "no_money": 409,
    "body_too_large": 413,
    "media_type_not_supported": 415,
    "bad_input": 422,
    "bad_price_book": 422,
    "unknown_name": 422,
    "ambiguous_name": 422,
    "took_too_long": 422,
    "idempotency_key_reused": 422,
    "too_many": 429,
    "error": 500,
    "internal_error": 500,
    "constraint_broken": 500,
    "broken_source": 502,
    "unavailable": 503,
    "engine_down": 503,
    "engine_busy": 503,
    "bad_credentials": 503,
    "storage_failed": 503,
}

WHAT_TO_DO: Final[Mapping[str, str]] = {
    "400": "Correct the request: docs/openapi.json says what it may be, and the sentence names the field.",
    "unknown_name": "Use one of the names the hint has.",
    "ambiguous_name": "Use one of the ids that the hint lists.",
    "took_too_long": "Ask for less at a time; the hint says what.",
    "401": "Send `Authorization: Bearer` with a key that is neither revoked nor expired.",
    "403": "Ask an owner of the organisation for a role that may, or use a key that reaches further.",
    "404": "Look at the id or name, and at the project: what belongs to others is not there for you.",
    "405": "Look into docs/openapi.json for what the path takes.",
    "409": "Look at the thing's state; it is there already, busy, or would lose something.",
    "quota_reached": "Delete something, or ask an owner (of a project's quota) or the operator for more.",
    "budget_reached": "Raise the budget (`PUT /v1/budget`), pay in, or wait for the next month.",
    "suspended": "Ask the operator: only the operator resumes an organisation.",
    "bad_price_book": "Correct the line that the sentence names; nothing of the book was taken.",
    "no_room": "Take a shape that is free (`GET /v1/shapes`), or come back later.",
    "413": "Send less; the hint has the limit.",
    "415": "Send JSON, as `Content-Type: application/json`.",
    "422": "It is well formed, but cannot be: do as the hint says.",
    "idempotency_key_reused": "Use a new `Idempotency-Key` for another request.",
    "429": "Wait as long as `Retry-After` says.",
    "500": "Report it with the `request_id`; the operator finds the trace in the log.",
    "502": "The operator looks at what was downloaded.",
    "503": "Try again after `Retry-After`; the operator looks at `tera doctor`.",
}

RETRY_AFTER_SECONDS: Final = 2  # of what is away or busy; a loop's turn is shorter
CONTENT_TYPE: Final = "application/problem+json"


class MalformedRequest(BadInput):
    """Not what the document allows, whoever asks for whatever."""

    code = "malformed_request"


class BodyTooLarge(BadInput):
    code = "body_too_large"


class MediaTypeNotSupported(BadInput):
    code = "media_type_not_supported"


class MethodNotAllowed(BadInput):
    code = "method_not_allowed"


class IdempotencyKeyReused(Conflict):
    code = "idempotency_key_reused"


class InternalError(TeraflockError):
    code: ClassVar[str] = "internal_error"


def status_of(error: TeraflockError) -> int:
    for kind in type(error).__mro__:
        if status := STATUS_BY_CODE.get(getattr(kind, "code", "")):
            return status
    return 500


def problem(error: TeraflockError, request_id: str) -> Problem:
    status = status_of(error)
    return Problem(
        type=f"about:blank#{error.code}",
        title=HTTPStatus(status).phrase,
        status=status,
        code=error.code,
        detail=error.sentence,
        hint=error.hint,
        request_id=request_id,
    )


LOGGED: Final = frozenset({401, 403, 429})
"""Refusals the operator wants to know of. Other mistakes of clients are in the access log alone."""


def told(error: Exception, asked: Asked, log: RequestLog) -> TeraflockError:
    """The error as a tenant may see it; what they may not is logged here."""
    if not isinstance(error, TeraflockError):
        line = f"request {asked.request_id} failed: {asked}"
        log.faults.note(
            f"{asked.source} {type(error)}", line, group=asked.group, level=logging.ERROR, error=error
        )
        return InternalError(
            "Something went wrong inside the server",
            hint=f"The operator finds it in the log under request {asked.request_id}",
        )
    status = status_of(error)
    line = f"{status} {error.code}: {asked}, request {asked.request_id}: {safe(error.sentence)}"
    if status >= 500:
        log.faults.note(
            f"{asked.source} {error.code}", line, group=asked.group, level=logging.ERROR, error=error,
            context=error.context,
        )  # fmt: skip
    elif status in LOGGED or error.context:
        log.refusals.note(f"{asked.source} {error.code}", line, group=asked.group, context=error.context)
    return error


def headers_of(error: TeraflockError) -> dict[str, str]:
    """What a client needs besides the body: how to log in, and when to come back."""
    if error.code == "not_authenticated":
        return {"WWW-Authenticate": "Bearer"}
    if isinstance(error, Unavailable):
        return {"Retry-After": str(RETRY_AFTER_SECONDS)}
    if seconds := error.context.get("retry_after_seconds"):
        return {"Retry-After": str(seconds)}
    return {}


def body_of(error: TeraflockError, request_id: str) -> bytes:
    return msgspec.json.encode(problem(error, request_id))
