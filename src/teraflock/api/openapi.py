"""The OpenAPI 3.1 document, generated from the routes. It describes exactly what the server serves.

Schemas come from the structs that decode requests and encode responses, so the server accepts what the document allows.
`x-permission` and `x-scope` say who may use an operation; the permission tests are generated from them.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from http import HTTPStatus
from typing import Any, Final

import msgspec

from teraflock import __version__
from teraflock.api.errors import CONTENT_TYPE, status_of_code
from teraflock.api.examples import EXAMPLES
from teraflock.api.route import Route, Scope
from teraflock.api.routes.all import ROUTES
from teraflock.wire.problem import Problem

_REF: Final = "#/components/schemas/{name}"
_DESCRIPTION: Final = (
    "A GPU cloud you own. Errors are `application/problem+json` with a stable `code`. Lists are paginated"
    " (`after`, `limit` → `items`, `next`). Requests that create something accept an `Idempotency-Key`: a retry with"
    " the same key returns the same response. Every `GET` except the event stream also answers `HEAD`. This document"
    " is served at `/v1/openapi.json`."
)
PATH_TEXT: Final = {"type": "string", "minLength": 1, "maxLength": 255}
_HEADERS: Final = {
    "RequestId": {
        "schema": {"type": "string"},
        "description": "The id of the request in the server's log.",
    }
}


def document(routes: Sequence[Route] = ROUTES) -> dict[str, Any]:
    schemas, components = _schemas(routes)
    paths: dict[str, dict[str, Any]] = {}
    problems: dict[str, Any] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, schemas, problems)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Teraflock",
            "version": __version__,
            "description": _DESCRIPTION,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "http://127.0.0.1:8372"}],
        "tags": [{"name": tag} for tag in dict.fromkeys(route.tag for route in routes)],
        "paths": paths,
        "components": {
            "schemas": components,
            "headers": _HEADERS,
            "responses": dict(sorted(problems.items())),
            "securitySchemes": {
                "key": {"type": "http", "scheme": "bearer", "description": "An API key, `tera_…`"}
            },
        },
    }


def document_json(routes: Sequence[Route] = ROUTES) -> str:
    return msgspec.json.format(msgspec.json.encode(document(routes)), indent=2).decode() + "\n"


@cache
def document_bytes() -> bytes:
    """The document as JSON, as the server sends it."""
    return document_json().encode()


def _schemas(routes: Sequence[Route]) -> tuple[Mapping[Any, Any], dict[str, Any]]:
    kinds: list[Any] = [Problem]
    for route in routes:
        kinds += [kind for kind in (route.body, route.answer) if kind not in (None, bytes)]
    kinds = list(dict.fromkeys(kinds))
    found, components = msgspec.json.schema_components(kinds, ref_template=_REF)
    for name, fields in _times(kinds).items():
        for field in fields:
            _mark_time(components[name]["properties"][field])
    return dict(zip(kinds, found, strict=True)), components


def _times(kinds: Sequence[Any]) -> dict[str, set[str]]:
    """The time fields of each struct. msgspec documents their format only if they require a zone."""
    found: dict[str, set[str]] = {}
    waiting: list[Any] = list(msgspec.inspect.multi_type_info(kinds))
    while waiting:
        kind = waiting.pop()
        if isinstance(kind, msgspec.inspect.StructType):
            if kind.cls.__name__ in found:
                continue
            parts = {each.encode_name: _parts(each.type) for each in kind.fields}
            found[kind.cls.__name__] = {name for name, types in parts.items() if _has_time(types)}
            waiting += [each for types in parts.values() for each in types]
        else:
            waiting += _parts(kind)[1:]
    return found


def _parts(kind: Any) -> list[Any]:
    """A type and the types it contains."""
    inspect = msgspec.inspect
    if isinstance(kind, inspect.Metadata):
        return _parts(kind.type)
    if isinstance(kind, inspect.UnionType):
        return [kind, *(part for each in kind.types for part in _parts(each))]
    if isinstance(kind, inspect.VarTupleType | inspect.ListType):
        return [kind, *_parts(kind.item_type)]
    if isinstance(kind, inspect.DictType):
        return [kind, *_parts(kind.value_type)]
    return [kind]


def _has_time(types: Sequence[Any]) -> bool:
    return any(isinstance(each, msgspec.inspect.DateTimeType) for each in types)


def _mark_time(schema: dict[str, Any]) -> None:
    for each in schema.get("anyOf", [schema]):
        if each.get("type") == "string":
            each["format"] = "date-time"


def _operation(route: Route, schemas: Mapping[Any, Any], problems: dict[str, Any]) -> dict[str, Any]:
    summary, description = route.words
    found: dict[str, Any] = {"operationId": route.name, "tags": [route.tag], "summary": summary}
    if description:
        found["description"] = description
    found["x-scope"] = route.scope.value
    if route.may:
        found["x-permission"] = route.may.value
    found["security"] = [] if route.scope == Scope.PUBLIC else [{"key": []}]
    if parameters := _parameters(route):
        found["parameters"] = parameters
    if route.body:
        content: dict[str, Any] = {"schema": schemas[route.body]}
        if examples := EXAMPLES.get(route.name):
            content["examples"] = {name: {"value": value} for name, value in examples.items()}
        found["requestBody"] = {"required": True, "content": {"application/json": content}}
    found["responses"] = _responses(route, schemas, problems)
    return found


def _parameters(route: Route) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": PATH_TEXT,
            "description": f"Id or name of the {name}.",
        }
        for name in route.parameters
    ]
    if route.query:
        (schema,), components = msgspec.json.schema_components([route.query], ref_template=_REF)
        kind = components[schema["$ref"].rpartition("/")[2]]
        required = kind.get("required", ())
        found += [_of_query(name, field, name in required) for name, field in kind["properties"].items()]
    if route.creates:
        found.append(_header("Idempotency-Key", "A retry with the same key is carried out only once.", 255))
    if route.stream:
        found.append(_header("Last-Event-ID", "The id of the last event received.", 100))
    return found


def _of_query(name: str, field: dict[str, Any], required: bool) -> dict[str, Any]:
    """Remove null from the schema: a parameter is left out instead."""
    kinds = [kind for kind in field.get("anyOf", [field]) if kind.get("type") != "null"]
    schema = {key: value for key, value in kinds[0].items() if key != "description"}
    if field.get("default") is not None:
        schema["default"] = field["default"]
    found: dict[str, Any] = {"name": name, "in": "query", "required": required, "schema": schema}
    if described := kinds[0].get("description"):
        found["description"] = described
    return found


def _header(name: str, description: str, length: int) -> dict[str, Any]:
    schema = {"type": "string", "minLength": 1, "maxLength": length, "pattern": "^[!-~]+$"}
    return {"name": name, "in": "header", "required": False, "schema": schema, "description": description}


_REQUEST_ID: Final = {"Request-Id": {"$ref": "#/components/headers/RequestId"}}


def _responses(route: Route, schemas: Mapping[Any, Any], problems: dict[str, Any]) -> dict[str, Any]:
    """The responses of a route. Problems go to `problems`, once per set of codes."""
    good: dict[str, Any] = {"description": HTTPStatus(route.status).phrase, "headers": _REQUEST_ID}
    if route.answer is not None:
        schema = _content(route) if route.answer is bytes else schemas[route.answer]
        good["content"] = {route.media_type.partition(";")[0]: {"schema": schema}}
    found = {str(route.status): good}
    codes: dict[int, list[str]] = {}
    for code in route.codes:
        codes.setdefault(status_of_code(code), []).append(code)
    for status, names in sorted(codes.items()):
        name = ".".join(sorted(names))
        found[str(status)] = {"$ref": f"#/components/responses/{name}"}
        problems[name] = {
            "description": f"{HTTPStatus(status).phrase}: {', '.join(f'`{each}`' for each in sorted(names))}",
            "headers": _REQUEST_ID,
            "content": {CONTENT_TYPE: {"schema": schemas[Problem]}},
        }
    return found


def _content(route: Route) -> dict[str, Any]:
    is_text = route.media_type.startswith("text/")
    return {"type": "string"} if is_text else {"type": "string", "format": "binary"}
