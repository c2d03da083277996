"""A route declares exactly the error codes that its code can raise, and docs/errors.md has them all."""

import importlib
from collections.abc import Mapping
from functools import cache
from typing import Final

import pytest
from tests.tidy.raised import CALLBACKS, Raised, Source

from teraflock.api.errors import status_of_class
from teraflock.api.route import Route, Scope
from teraflock.api.routes.all import ROUTES
from teraflock.app.reference import codes_of_api, errors_page, load_error_classes
from teraflock.base.errors import TeraflockError, error_classes
from teraflock.client.errors import class_of_status

NEVER_MORE: Final = "it never starts or grows an instance, which is when these are checked"
CANNOT: Final[Mapping[str, tuple[tuple[str, ...], str]]] = {
    **dict.fromkeys(
        (
            "delete_instance", "stop_instance", "restart_instance", "acknowledge_notice",
            "restore_instance", "stop_any_instance", "delete_any_instance",
        ),
        (("suspended", "budget_reached"), NEVER_MORE),
    ),
    **dict.fromkeys(("make_snapshot", "change_instance"), (("budget_reached",), NEVER_MORE)),
    **dict.fromkeys(
        ("list_projects", "make_project", "show_project"),
        (("refused",), "a stored project has a network number within the range"),
    ),
}  # fmt: skip
"""Codes that the analysis finds but that are never sent, with the reason."""
FROM_WORKERS: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(
        ("estimate_workload", "make_plan", "recommend_gpus"), ("unknown_name", "too_much_work", "unavailable")
    ),
    "upgrade_host": ("bad_input", "engine_busy"),
}
"""Codes that come from the planner's processes or from a host program, which the analysis cannot follow."""


@cache
def source() -> Source:
    return Source()


@cache
def raised() -> Mapping[str, frozenset[str]]:
    """Names of error classes, by the name of a route's function."""
    walk = Raised(source())
    names = {route.name: f"{route.handler.__module__}.{route.name}" for route in ROUTES}
    walk.follow(names.values())
    return {short: walk.known[full] for short, full in names.items()}


def code_of(name: str) -> str:
    module, _, kind = name.rpartition(".")
    error: type[TeraflockError] = getattr(importlib.import_module(module), kind)
    return error.code


def can_send(route: Route) -> set[str]:
    cannot, _ = CANNOT.get(route.name, ((), ""))
    found = {code_of(each) for each in raised()[route.name]} - set(cannot)
    return found | set(FROM_WORKERS.get(route.name, ()))


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.name)
def test_a_route_declares_every_code_it_can_send(route: Route) -> None:
    assert sorted(can_send(route) - set(route.codes)) == []


@pytest.mark.parametrize("route", [route for route in ROUTES if route.errors], ids=lambda route: route.name)
def test_a_route_declares_no_code_that_it_never_sends(route: Route) -> None:
    assert sorted(set(route.errors) - can_send(route)) == []


def test_the_analysis_finds_known_errors() -> None:
    """Without followed calls the test would prove nothing: launch and exec reach the bill, database and drivers."""
    launch = {each.rpartition(".")[2] for each in raised()["launch_instances"]}
    assert {"NoCapacity", "QuotaReached", "BudgetReached", "Suspended", "StorageFailed"} <= launch
    assert "EngineMissing" in {each.rpartition(".")[2] for each in raised()["exec_in_instance"]}
    assert "NoCapacity" not in {each.rpartition(".")[2] for each in raised()["list_instances"]}


def test_the_callbacks_of_the_analysis_exist() -> None:
    for attribute, functions in CALLBACKS.items():
        assert attribute.rpartition(".")[0] in source().classes, attribute
        assert [each for each in functions if each not in source().functions] == []
    assert sorted(CANNOT.keys() - {route.name for route in ROUTES}) == []


def test_admission_sends_only_what_every_route_declares() -> None:
    walk = Raised(source())
    walk.follow(["teraflock.api.endpoint.admitted"])
    codes = {code_of(each) for each in walk.known["teraflock.api.endpoint.admitted"]}
    for route in ROUTES:
        if route.scope == Scope.PROJECT:
            assert sorted(codes - set(route.codes)) == []


def test_every_error_class_has_a_meaning_and_a_remedy() -> None:
    load_error_classes()
    own = [
        kind for kind in error_classes() if "code" in vars(kind) and kind.__module__.startswith("teraflock.")
    ]
    assert len(own) > 30
    assert [kind for kind in own if not kind.__doc__ or not kind.remedy] == []
    page = errors_page()
    assert [kind.code for kind in own if f"| `{kind.code}` |" not in page] == []


def test_tera_exits_with_the_documented_exit_code() -> None:
    """The command line may use the status instead of the code."""
    load_error_classes()
    for kind in error_classes():
        if kind.code in codes_of_api():
            assert class_of_status(status_of_class(kind)).exit_code == kind.exit_code, kind
