"""A route that does not declare who may use it is an error at import."""

import pytest

from teraflock.api.call import Call
from teraflock.api.route import Routes, Scope
from teraflock.tenant.rules import Permission


def handler(call: Call) -> bytes:
    """A sentence."""
    return b""


def test_route_needs_a_scope() -> None:
    with pytest.raises(TypeError, match="scope"):
        Routes("x").get("/x")(handler)


@pytest.mark.parametrize("scope", [Scope.ANYWHERE, Scope.ORGANISATION, Scope.PROJECT, Scope.INSTALLATION])
def test_route_needs_a_permission(scope: Scope) -> None:
    with pytest.raises(TypeError, match="permission"):
        Routes("x").get("/x", scope=scope)(handler)


def test_public_route_has_no_permission() -> None:
    with pytest.raises(TypeError, match="permission"):
        Routes("x").get("/x", scope=Scope.PUBLIC, may=Permission.HOST_READ)(handler)


def test_path_parameters_match_the_function() -> None:
    with pytest.raises(TypeError, match="parameters"):
        Routes("x").get("/x/{thing}", scope=Scope.PUBLIC)(handler)


def test_route_needs_a_docstring() -> None:
    def silent(call: Call) -> bytes:
        return b""

    with pytest.raises(TypeError, match="has no docstring"):
        Routes("x").get("/x", scope=Scope.PUBLIC)(silent)
