"""An error response has only public fields, and the status of its error class."""

import pytest

from teraflock.api.asked import Asked
from teraflock.api.errors import body_of, headers_of, problem, status_of, told
from teraflock.api.refusals import RequestLog
from teraflock.base.errors import Conflict, NotAuthenticated, TeraflockError, TooMany, Unavailable


def test_error_class_without_a_status_uses_that_of_its_parent() -> None:
    class Special(Conflict):
        code = "special"

    assert status_of(Special("x")) == 409
    assert problem(Special("x"), "r").code == "special"


def test_private_context_is_not_sent() -> None:
    error = Conflict("A sentence", hint="A hint", context={"other_tenant": "acme"})
    body = body_of(error, "r1")
    assert b"acme" not in body
    assert b"A sentence" in body
    assert b"A hint" in body
    assert b"r1" in body


@pytest.mark.parametrize(
    ("error", "header"),
    [
        (NotAuthenticated("x"), ("WWW-Authenticate", "Bearer")),
        (Unavailable("x"), ("Retry-After", "2")),
        (TooMany("x", context={"retry_after_seconds": 7}), ("Retry-After", "7")),
    ],
)
def test_errors_have_the_headers_a_client_needs(error: TeraflockError, header: tuple[str, str]) -> None:
    assert headers_of(error) == dict([header])


def test_unexpected_error_hides_its_message(caplog: pytest.LogCaptureFixture) -> None:
    public = told(ValueError("password=hunter2"), Asked("r2", "GET", "/v1/x", "10.0.0.1"), RequestLog(float))
    assert public.code == "internal_error"
    assert "hunter2" not in public.sentence + public.hint
    assert "r2" in public.hint
    assert "hunter2" in caplog.text
