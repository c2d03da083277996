"""From a request to its response: authenticate, authorise, decode, call the handler, encode.

The order is always the same: key, rate limit, project, permission, query, body, work. So an error about a body reveals
nothing about a project that the client may not see, and only authorised clients can send a body.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, Final
from urllib.parse import parse_qsl

import msgspec

from teraflock.api.addresses import source_of
from teraflock.api.asked import Asked
from teraflock.api.call import Call, Raw
from teraflock.api.errors import (
    CONTENT_TYPE,
    MalformedRequest,
    MediaTypeNotSupported,
    body_of,
    headers_of,
    status_of,
    told,
)
from teraflock.api.idempotency import done_once
from teraflock.api.refusals import RequestLog
from teraflock.api.route import Route, RouteWork, Scope
from teraflock.api.services import Services
from teraflock.base.errors import NotAuthenticated, NotFound
from teraflock.tenant.admission import admitted_project
from teraflock.tenant.model import Actor, Project
from teraflock.tenant.rules import Permission

REF_CHARACTERS_MAX: Final = 255
OF_REMOVED: Final = (Permission.BILL_READ, Permission.USAGE_READ)
"""Permissions that operators keep for a deleted project, whose bills are kept."""

_PATTERN: Final = re.compile(r"Expected `str` matching regex .* - at `\$\.?(.*)`", re.DOTALL)
_encode: Final = msgspec.json.Encoder().encode


class Reply(msgspec.Struct, frozen=True):
    status: int
    body: bytes
    media_type: str
    headers: dict[str, str]


def reply_to(route: Route, services: Services, raw: Raw) -> Reply:
    """The response, whatever happens. Never raises."""
    try:
        if route.work != RouteWork.READ or route.scope == Scope.PUBLIC:
            return _answered(route, services, raw)
        with services.snapshots.request(), _timed(services, raw.asked):
            return _answered(route, services, raw)
    except Exception as error:
        return failed(error, raw.asked, services.log)


def _answered(route: Route, services: Services, raw: Raw) -> Reply:
    call, query = admitted(route, services, raw)
    return done(route, call, query)


def admitted_first(route: Route, services: Services, raw: Raw) -> tuple[Call, msgspec.Struct | None]:
    """As `admitted`, for a request whose work runs later and elsewhere."""
    with services.snapshots.request():
        return admitted(route, services, raw)


def done_reading(route: Route, call: Call, query: msgspec.Struct | None) -> Reply:
    with call.services.snapshots.request(), _timed(call.services, call.raw.asked):
        return done(route, call, query)


def done_apart(route: Route, call: Call, query: msgspec.Struct | None) -> Reply:
    """As `done_reading`, for data outside the server's database."""
    with _timed(call.services, call.raw.asked):
        return done(route, call, query)


@contextmanager
def _timed(services: Services, asked: Asked) -> Iterator[None]:
    began = services.processor_seconds()
    try:
        yield
    finally:
        if asked.actor is not None:
            services.request_rates.reads(asked.actor, services.processor_seconds() - began)


def failed(error: Exception, asked: Asked, log: RequestLog) -> Reply:
    public = told(error, asked, log)
    return Reply(status_of(public), body_of(public, asked.request_id), CONTENT_TYPE, headers_of(public))


def admitted(route: Route, services: Services, raw: Raw) -> tuple[Call, msgspec.Struct | None]:
    """The call and its query, after authentication and authorisation."""
    actor = _who(route, services, raw)
    for ref in raw.path.values():
        _check_ref(ref)
    query = _query(route, raw.query) if route.scope != Scope.PROJECT else None
    project: Project | None = None
    if actor is not None and route.may is not None:
        project, query = _permitted(route, services, raw, actor, query)
    return Call(services, services.nouns, raw, actor, project), query


def done(route: Route, call: Call, query: msgspec.Struct | None) -> Reply:
    """Run the handler of an admitted call."""
    raw = call.raw
    words: dict[str, Any] = dict(raw.path)
    if route.query is not None:
        words["query"] = query
    if route.body is not None:
        words["body"] = _body(route.body, raw)

    def handle(call: Call) -> bytes:
        answer = route.handler(call, **words)
        return answer if isinstance(answer, bytes) else b"" if answer is None else _encode(answer)

    headers: dict[str, str] = {}
    if route.creates and raw.idempotency_key is not None:
        content, again = done_once(route, call, words.get("body"), handle)
        if again:
            headers["Idempotent-Replay"] = "true"
    else:
        content = handle(call)
    if route.work in (RouteWork.WRITE, RouteWork.LONG):
        call.services.wake()
    if route.scope != Scope.PUBLIC and (news := call.services.news.latest(call.actor)):
        headers["Tera-News"] = news
    return Reply(route.status, content, route.media_type, headers)


def _who(route: Route, services: Services, raw: Raw) -> Actor | None:
    source = source_of(raw.asked.address)
    if route.scope == Scope.PUBLIC:
        services.request_rates.asks_openly(source)
        return None
    try:
        actor = services.nouns.tenants.authenticate(_bearer(raw.authorization))
    except NotAuthenticated:
        services.request_rates.fails(source)
        raise
    raw.asked.actor = actor
    services.request_rates.asks(actor)
    return actor


def _bearer(authorization: str) -> str:
    kind, _, secret = authorization.partition(" ")
    if not authorization:
        raise NotAuthenticated(
            "This needs an API key",
            hint="Send it as `Authorization: Bearer tera_…`. `make up` prints the file of the operator's key",
        )
    if kind.lower() != "bearer" or not secret:
        raise NotAuthenticated(
            "The `Authorization` header is not a bearer token",
            hint="Write it as `Authorization: Bearer tera_…`",
        )
    return secret.strip()


def _permitted(
    route: Route, services: Services, raw: Raw, actor: Actor, query: msgspec.Struct | None
) -> tuple[Project | None, msgspec.Struct | None]:
    assert route.may is not None
    ref, removed = raw.path.get("project"), False
    if route.scope == Scope.PROJECT and ref is None:
        query = _query(route, raw.query)
        ref, removed = getattr(query, "project", None), route.may in OF_REMOVED
    projects = services.nouns.tenants.projects
    project = admitted_project(projects, actor, route.scope, route.may, ref, removed=removed)
    if route.scope == Scope.PROJECT and "project" in raw.path:
        query = _query(route, raw.query)
    return project, query


def _check_ref(ref: str) -> None:
    if len(ref) > REF_CHARACTERS_MAX or not ref.isprintable():
        raise NotFound("The path is not valid", hint="Check the names and ids in the path")


def _query(route: Route, text: bytes) -> msgspec.Struct | None:
    if route.query is None:
        if text:
            raise MalformedRequest(
                "This path takes no query parameters", hint="Remove everything after the `?`"
            )
        return None
    return _query_decoded(route.query, text)


@lru_cache(maxsize=1024)  # the same few queries repeat, and a struct is frozen
def _query_decoded(kind: type[msgspec.Struct], text: bytes) -> msgspec.Struct:
    try:
        pairs = parse_qsl(text.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=50)
    except ValueError:
        raise MalformedRequest(
            "The query string is not valid", hint="Encode it as `name=value&name=value` in UTF-8"
        ) from None
    values: dict[str, Any] = dict(pairs)
    many = _repeatable(kind)
    for name in many & values.keys():
        values[name] = [value for each, value in pairs if each == name]
    if len(values) != len([name for name, _ in pairs if name not in many]) + len(many & values.keys()):
        raise MalformedRequest("A query parameter is given twice", hint="Give each parameter once")
    try:
        return msgspec.convert(values, kind, strict=False)
    except msgspec.ValidationError as error:
        raise MalformedRequest(f"Invalid query: {_plain(error)}", hint=_taken(kind)) from None


@lru_cache(maxsize=256)
def _repeatable(kind: type[msgspec.Struct]) -> frozenset[str]:
    """The parameters that can be repeated in a query."""
    info = msgspec.inspect.type_info(kind)
    assert isinstance(info, msgspec.inspect.StructType)
    fields = info.fields
    return frozenset(
        each.name for each in fields if isinstance(_plain_type(each.type), msgspec.inspect.VarTupleType)
    )


def _plain_type(kind: msgspec.inspect.Type) -> msgspec.inspect.Type:
    return kind.type if isinstance(kind, msgspec.inspect.Metadata) else kind


def _body(kind: type[msgspec.Struct], raw: Raw) -> msgspec.Struct:
    media, _, _ = raw.content_type.partition(";")
    if raw.body and media.strip().lower() not in ("application/json", ""):
        raise MediaTypeNotSupported(
            "The request body is not declared as JSON", hint="Send JSON with `Content-Type: application/json`"
        )
    try:
        try:
            return _decoder(kind)(raw.body)
        except msgspec.ValidationError as error:
            if "got `float`" not in str(error):
                raise
            return msgspec.convert(_whole(msgspec.json.decode(raw.body)), kind)
    except msgspec.ValidationError as error:
        raise MalformedRequest(f"Invalid request body: {_plain(error)}", hint=_taken(kind)) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise MalformedRequest(f"The request body is not JSON: {_plain(error)}", hint=_taken(kind)) from None


def _whole(value: Any) -> Any:
    """Replace floats such as `2.0` with 2: in JSON they are the same number."""
    if isinstance(value, dict):
        return {name: _whole(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_whole(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


@lru_cache(maxsize=256)
def _decoder(kind: type[msgspec.Struct]) -> Callable[[bytes], msgspec.Struct]:
    return msgspec.json.Decoder(kind).decode


def _plain(error: Exception) -> str:
    """The message of msgspec, without the regular expression if a text does not match."""
    text = str(error).rstrip(".")
    wrong = _PATTERN.fullmatch(text)
    return f"`{wrong[1]}` has an invalid format or character" if wrong else text


def _taken(kind: type[msgspec.Struct]) -> str:
    return f"It accepts {', '.join(f'`{name}`' for name in kind.__struct_fields__)}; see docs/openapi.json"
