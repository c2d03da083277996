"""Errors of the API: one format (RFC 9457), one status per error class, no traceback.

Invariants:
- a response has the code, the public sentence, the hint and the request id; the private context goes to the log, with
  the address, the key, the method and the path (api/refusals.py limits the number of lines);
- a code without a row in `STATUS_BY_CODE` has the status of its nearest parent in the error tree;
- an unexpected exception becomes `internal_error`; the log has its traceback under the same request id.
"""

import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import ClassVar, Final

import msgspec

from teraflock.api.asked import Asked, safe
from teraflock.api.refusals import RequestLog
from teraflock.base.errors import BadInput, TeraflockError, Unavailable, error_classes
from teraflock.wire.problem import Problem

STATUS_BY_CODE: Final[Mapping[str, int]] = {
    "malformed_request": 400,
    "not_authenticated": 401,
    "forbidden": 403,
    "not_found": 404,
    "method_not_allowed": 405,
    "conflict": 409,
    "refused": 409,
    "body_too_large": 413,
    "media_type_not_supported": 415,
    "bad_input": 422,
    "too_many": 429,
    "error": 500,
    "constraint_broken": 500,
    "broken_source": 502,
    "unavailable": 503,
    "storage_failed": 503,
}

RETRY_AFTER_SECONDS: Final = 2  # for unavailable or busy parts; one turn of a loop is shorter
CONTENT_TYPE: Final = "application/problem+json"


class MalformedRequest(BadInput):
    """The request does not match the API document."""

    code = "malformed_request"
    remedy = "Correct the field that the sentence names. docs/openapi.json has the format."


class BodyTooLarge(BadInput):
    """The body of the request is larger than the server accepts."""

    code = "body_too_large"
    remedy = "Send less. The hint has the limit."


class MediaTypeNotSupported(BadInput):
    """The body is not JSON."""

    code = "media_type_not_supported"
    remedy = "Send JSON with `Content-Type: application/json`."


class MethodNotAllowed(BadInput):
    """The path exists, but not with this HTTP method."""

    code = "method_not_allowed"
    remedy = "Use a method that the `Allow` header lists."


class IdempotencyKeyReused(BadInput):
    """The `Idempotency-Key` was already used for a different request."""

    code = "idempotency_key_reused"
    remedy = "Use a new key for a new request."


class InternalError(TeraflockError):
    """An unexpected error inside the server."""

    code: ClassVar[str] = "internal_error"


def status_of(error: TeraflockError) -> int:
    return status_of_class(type(error))


def status_of_class(kind: type[TeraflockError]) -> int:
    return next(
        STATUS_BY_CODE[code] for each in kind.__mro__ if (code := getattr(each, "code", "")) in STATUS_BY_CODE
    )


def status_of_code(code: str) -> int:
    return status_of_class(next(kind for kind in error_classes() if kind.code == code))


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
"""Refusals that are logged for the operator. Other client errors are only in the access log."""


def told(error: Exception, asked: Asked, log: RequestLog) -> TeraflockError:
    """The error as the tenant may see it. The rest goes to the log."""
    if not isinstance(error, TeraflockError):
        line = f"request {asked.request_id} failed: {asked}"
        log.faults.note(
            f"{asked.source} {type(error)}", line, group=asked.group, level=logging.ERROR, error=error
        )
        return InternalError(
            "Internal server error",
            hint=f"Give the operator this request id, which is in the server's log: {asked.request_id}",
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
    """Additional headers: how to authenticate, and when to retry."""
    if error.code == "not_authenticated":
        return {"WWW-Authenticate": "Bearer"}
    if isinstance(error, Unavailable):
        return {"Retry-After": str(RETRY_AFTER_SECONDS)}
    if seconds := error.context.get("retry_after_seconds"):
        return {"Retry-After": str(seconds)}
    return {}


def body_of(error: TeraflockError, request_id: str) -> bytes:
    return msgspec.json.encode(problem(error, request_id))
