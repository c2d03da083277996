"""Every error of the house has a status, and no other fields leave the server than the public ones."""

import importlib
import pkgutil
from collections.abc import Iterator

import pytest

import teraflock
from teraflock.api.asked import Asked
from teraflock.api.errors import STATUS_BY_CODE, WHAT_TO_DO, body_of, headers_of, problem, status_of, told
from teraflock.api.refusals import RequestLog
from teraflock.base.errors import Conflict, NotAuthenticated, TeraflockError, TooMany, Unavailable

ELSEWHERE = ("cli", "client", "app", "workload", "host", "estimate", "plan", "offer", "__main__")
"""Their errors never leave over the API: they are told where they happen."""


def tree(root: type[TeraflockError]) -> Iterator[type[TeraflockError]]:
    yield root
    for child in root.__subclasses__():
        yield from tree(child)


def test_every_error_of_the_domain_has_a_status_by_itself_or_by_its_parent() -> None:
    for module in pkgutil.walk_packages(teraflock.__path__, "teraflock."):
        if module.name.split(".")[1] not in ELSEWHERE and ".postgres" not in module.name:
            importlib.import_module(module.name)
    kinds = [kind for kind in tree(TeraflockError) if kind.__module__.split(".")[1] not in ELSEWHERE]
    assert len(kinds) > 15
    for kind in kinds:
        assert status_of(kind("x")) in WHAT_STATUSES, kind
        if kind is not TeraflockError:
            assert status_of(kind("x")) != 500 or STATUS_BY_CODE.get(kind.code) == 500, (
                f"{kind} has no status"
            )


WHAT_STATUSES = set(STATUS_BY_CODE.values())


def test_every_code_says_what_to_do() -> None:
    assert [
        code
        for code, status in STATUS_BY_CODE.items()
        if code not in WHAT_TO_DO and str(status) not in WHAT_TO_DO
    ] == []


def test_a_child_without_a_row_takes_its_parents_status() -> None:
    class Special(Conflict):
        code = "special"

    assert status_of(Special("x")) == 409
    assert problem(Special("x"), "r").code == "special"


def test_the_private_context_stays_inside() -> None:
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
def test_what_a_client_needs_stands_in_a_header(error: TeraflockError, header: tuple[str, str]) -> None:
    assert headers_of(error) == dict([header])


def test_what_nobody_foresaw_is_told_without_its_words(caplog: pytest.LogCaptureFixture) -> None:
    public = told(ValueError("password=hunter2"), Asked("r2", "GET", "/v1/x", "10.0.0.1"), RequestLog(float))
    assert public.code == "internal_error"
    assert "hunter2" not in public.sentence + public.hint
    assert "r2" in public.hint
    assert "hunter2" in caplog.text
