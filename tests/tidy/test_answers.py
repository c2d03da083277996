"""The client accepts fields that a newer server adds to its responses. Only requests refuse unknown fields."""

from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import msgspec
from msgspec import inspect

from teraflock import wire
from teraflock.api.routes.all import ROUTES


def strict_types(kind: Any) -> set[str]:
    """The types in a type, or itself, that refuse unknown fields."""
    seen: dict[type, bool] = {}
    _walk(inspect.type_info(kind), seen)
    return {each.__name__ for each, is_strict in seen.items() if is_strict}


def _walk(kind: object, seen: dict[type, bool]) -> None:
    if isinstance(kind, inspect.StructType):
        if kind.cls not in seen:
            seen[kind.cls] = kind.forbid_unknown_fields
            for field in kind.fields:
                _walk(field.type, seen)
    elif isinstance(kind, tuple):
        for each in kind:
            _walk(each, seen)
    elif isinstance(kind, inspect.Type):
        for name in kind.__struct_fields__:
            _walk(getattr(kind, name), seen)


def tolerant_wire_types() -> Iterator[type[msgspec.Struct]]:
    for module in iter_modules(wire.__path__):
        for each in vars(import_module(f"{wire.__name__}.{module.name}")).values():
            is_struct = isinstance(each, type) and issubclass(each, msgspec.Struct)
            if is_struct and each is not msgspec.Struct and not each.__struct_config__.forbid_unknown_fields:
                yield each


def test_responses_accept_new_fields() -> None:
    answers = {route.answer for route in ROUTES if route.answer not in (None, bytes)}
    assert len(answers) > 50
    found = {getattr(each, "__name__", str(each)): strict_types(each) for each in answers}
    assert {name: strict for name, strict in found.items() if strict} == {}


def test_types_that_accept_new_fields_contain_none_that_refuse_them() -> None:
    found = {each.__name__: strict_types(each) for each in tolerant_wire_types()}
    assert {name: strict for name, strict in found.items() if strict} == {}


def test_requests_refuse_unknown_fields() -> None:
    bodies = {route.body for route in ROUTES if route.body is not None}
    assert {each.__name__ for each in bodies if each.__name__ not in strict_types(each)} == set()


def test_strict_type_inside_a_response_is_found() -> None:
    class Inner(msgspec.Struct, forbid_unknown_fields=True):
        at: int

    class Outer(msgspec.Struct):
        items: tuple[dict[str, Inner], ...] | None

    assert strict_types(Outer) == {"Inner"}
