"""A provider that answers with anything: nothing is believed, run, shown raw or concluded from it."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.contract.cloud.direct import ID, Direct
from tests.contract.cloud.ground import KINDS, MORE

from teraflock.base.errors import TeraflockError
from teraflock.drivers.clouds.calling import CALLS_MAX
from teraflock.drivers.clouds.http import reply_of
from teraflock.drivers.clouds.sound import PRICE_MICROS_MAX, is_plain, sound, sound_types, token_of_page
from teraflock.drivers.rented import Remote
from teraflock.instance.driver import Endpoint, MachineType, Seen, Sighting
from teraflock.instance.engine_errors import BadCredentials, EngineDown, EngineRefused

ALL = sorted({**KINDS, **MORE})
PAGES: dict[str, Callable[[Any], None]] = {
    "vast": lambda body: body.update(next_token="0"),
    "paperspace": lambda body: body.update(hasMore=True, nextPage="again"),
    "ibm": lambda body: body.update(next={"href": "https://x/?start=again"}),
    "azure": lambda body: body.update(nextLink="https://x/?%24skipToken=again%3D"),
    "baidu": lambda body: body.update(isTruncated=True, nextMarker="again"),
    "alibaba": lambda body: body.update(NextToken="again"),
    "gcp": lambda body: body.update(nextPageToken="again"),
    "genesis": lambda body: body.update(instances=100 * [_genesis()]),
    "huawei": lambda body: body.update(servers=500 * [{"id": "x", "status": "ACTIVE", "tags": []}]),
    "tencent": lambda body: body["Response"].update(TotalCount=10**9),
}
"""How a listing says that there is more."""


def _genesis() -> Any:
    return {"name": "other", "id": "x", "status": "active", "region": "r", "public_ip": None}


def changed(cloud: Direct, change: Callable[[Any], None]) -> None:
    """Change every answer that is not an error."""
    answered = cloud.fake.route

    def route(*words: Any) -> Any:
        status, body = answered(*words)
        if status < 400 and isinstance(body, dict) and "access_token" not in body:
            change(body)
        return status, body

    cloud.fake.route = route  # type: ignore[method-assign, assignment]


@pytest.mark.parametrize("kind", sorted(PAGES))
def test_a_listing_that_never_ends_is_no_listing(kind: str, tmp_path: Path) -> None:
    """A listing that was cut off would make machines look absent, and they would be given up."""
    cloud = Direct(kind, tmp_path)
    made = cloud.create()
    changed(cloud, PAGES[kind])
    with pytest.raises(EngineDown, match=f"{CALLS_MAX} pages"):
        cloud.site.sightings()
    with pytest.raises(TeraflockError):
        cloud.site.delete(cloud.machine(remote_id=made.remote_id).handle)


def test_a_next_page_without_a_token_is_no_end() -> None:
    assert token_of_page("", "start") == ""
    assert token_of_page("https://x/?a=1&Start=b%2Bc", "start") == "b+c"
    with pytest.raises(LookupError):
        token_of_page("https://x/?page=2", "start")


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 100_000,
        b'{"price": NaN}',
        b'{"price": 1e999}',
        b"\xff\xfe",
        b'{"a":' * 5_000,
        b"<html>" * 10_000,
    ],
)
def test_any_body_becomes_a_reply(body: bytes) -> None:
    reply = reply_of(200, {"Retry-After": "nan"}, body)
    assert reply.retry_after is None
    assert len(reply.text) <= 500


def remote(**changes: Any) -> Remote:
    parts: dict[str, Any] = {
        "remote_id": "m-1",
        "instance_id": ID,
        "token": f"{ID}.1.0",
        "seen": Seen.RUNNING,
    }
    return Remote(**{**parts, **changes})


@pytest.mark.parametrize(
    "change",
    [
        {"user": "-oProxyCommand=touch /tmp/x"},
        {"user": "root\n"},
        {"user": ""},
        {"endpoints": {22: Endpoint("-oProxyCommand=id", 22)}},
        {"endpoints": {22: Endpoint("198.51.100.1\n* ssh-ed25519 AAAA", 22)}},
        {"endpoints": {22: Endpoint("a b", 22)}},
        {"endpoints": {22: Endpoint("198.51.100.1", 0)}},
        {"endpoints": {22: Endpoint("198.51.100.1", 70_000)}},
        {"zone": "us\x1b[2J"},
        {"remote_id": "x" * 1_000},
        {"type": "a\nb"},
    ],
)
def test_what_would_become_a_part_of_a_command_or_a_line_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="machine's"):
        sound(remote(**change))


@pytest.mark.parametrize("address", ["198.51.100.1", "2001:db8::1", "ssh5.vast.ai", "a"])
def test_addresses_that_providers_have_are_accepted(address: str) -> None:
    found = remote(endpoints={22: Endpoint(address, 2222)}, user="ubuntu", price_micros_per_hour=5)
    assert sound(found) == found


@pytest.mark.parametrize("price", [-1, -(10**30), PRICE_MICROS_MAX + 1])
def test_a_price_that_cannot_be_one_is_unknown(price: int) -> None:
    assert sound(remote(price_micros_per_hour=price)).price_micros_per_hour is None


def test_types_keep_only_prices_that_can_be_true() -> None:
    size: dict[str, Any] = {
        "region": "r",
        "gpu": "L4",
        "gpus": 1,
        "gpu_memory_bytes": 1,
        "vcpus": 1,
        "ram_bytes": 1,
    }
    size |= {"disk_bytes": 1, "currency": "USD"}
    given = [
        MachineType(name="good", prices={"on-demand": 5, "spot": -1}, **size),
        MachineType(name="free", prices={"on-demand": 0}, **size),
        MachineType(name="a\nb", prices={"on-demand": 5}, **size),
    ]
    (found,) = sound_types(given)
    assert (found.name, found.prices) == ("good", {"on-demand": 5})


@given(st.text(max_size=600))
def test_a_plain_text_stays_one_line(text: str) -> None:
    assert not is_plain(text) or len(text.splitlines()) <= 1


@pytest.mark.parametrize("kind", ALL)
def test_words_of_a_provider_are_one_printable_line(kind: str, tmp_path: Path) -> None:
    cloud = Direct(kind, tmp_path)
    words = "no\x1b[2J\r\nERROR forged line \u202e" + "x" * 9_999

    def route(*_: Any) -> Any:
        bodies = {"message": words, "msg": words, "detail": words, "Message": words, "error_msg": words}
        return 418, {"error": {"code": "odd", **bodies}, "code": "odd", **bodies}

    cloud.fake.route = route  # type: ignore[method-assign, assignment]
    with pytest.raises(TeraflockError) as error:
        cloud.site.check()
    assert error.value.sentence.isprintable()
    assert len(error.value.sentence) < 500
    assert isinstance(error.value, EngineRefused | EngineDown)


VALUES: tuple[Any, ...] = (None, -1, "1e999", [], "\x1b[2J")


@pytest.mark.parametrize("kind", ALL)
def test_a_listing_with_another_value_anywhere_is_read_or_refused(kind: str, tmp_path: Path) -> None:
    """Each field of each answer in turn has another value. No answer ends in an error that is not ours."""
    cloud = Direct(kind, tmp_path)
    cloud.ready(cloud.create())
    answered, bodies = _recorded(cloud)
    cloud.site.sightings()
    paths = sorted({path for body in bodies for path in _paths(body)}, key=repr)
    assert len(paths) > 5
    for number, path in enumerate(paths):
        value = VALUES[number % len(VALUES)]
        cloud.fake.route = lambda *words, at=path, put=value: _with(answered(*words), at, put)  # type: ignore[method-assign]
        for each in _seen(cloud):
            assert each.made is not None
            assert (each.made.price_micros_per_hour or 0) >= 0, path


@pytest.mark.parametrize("kind", ALL)
def test_a_check_and_machine_types_with_another_value_anywhere_stay_printable(
    kind: str, tmp_path: Path
) -> None:
    cloud = Direct(kind, tmp_path)
    answered, bodies = _recorded(cloud)
    cloud.site.check()
    cloud.site.refresh_types()
    paths = sorted({path for body in bodies for path in _paths(body)}, key=repr)
    for number, path in enumerate(paths):
        value = ("a\x1b[2J\nERROR", -1, None)[number % 3]
        cloud.fake.route = lambda *words, at=path, put=value: _with(answered(*words), at, put)  # type: ignore[method-assign]
        site = cloud.open()
        for act in (site.check, site.refresh_types):
            try:
                found = act()
            except TeraflockError as error:
                found = error.sentence
            for each in (
                [found] if isinstance(found, str) else [f"{one.name}{one.region}{one.gpu}" for one in found]
            ):
                assert each.isprintable(), path


def _seen(cloud: Direct) -> list[Sighting]:
    try:
        return list(cloud.open().sightings())
    except (EngineDown, EngineRefused, BadCredentials):
        return []


def _paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The place of every value inside a value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in items:
        yield (*path, key)
        yield from _paths(each, (*path, key))


def _with(answer: tuple[int, Any], path: tuple[Any, ...], value: Any) -> tuple[int, Any]:
    """The answer with another value at a place, where it has that place."""
    status, body = answer[0], msgspec.json.decode(msgspec.json.encode(answer[1]))
    inside = body
    try:
        for key in path[:-1]:
            inside = inside[key]
        inside[path[-1]]
    except (LookupError, TypeError):
        return status, body
    inside[path[-1]] = value
    return status, body


def _recorded(cloud: Direct) -> tuple[Callable[..., Any], list[Any]]:
    """The answers of the fake from now on, and how it answered before."""
    answered, bodies = cloud.fake.route, list[Any]()

    def recorded(*words: Any) -> Any:
        status, body = answered(*words)
        bodies.append(body)
        return status, body

    cloud.fake.route = recorded  # type: ignore[method-assign, assignment]
    return answered, bodies
