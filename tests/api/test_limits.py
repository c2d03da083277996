"""Limits per tenant: shares of the server, rates of requests, and log lines about refusals."""

import asyncio
import logging
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.api.asking import SETTINGS, Answer, ApiServer, Tenants

from teraflock.api.asgi import PLANS_WAITING_MAX, Application
from teraflock.app.settings import ACCESS_LOG_FILE
from teraflock.instance.driver import Ran

Opened = Callable[..., ApiServer]
EXEC = "/v1/instances/web/exec"


@pytest.fixture
def opened(furnished: tuple[Path, Tenants], tmp_path: Path) -> Iterator[Opened]:
    servers: list[ApiServer] = []

    def opened(**settings: Any) -> ApiServer:
        shutil.copytree(furnished[0], tmp_path / "limited")
        servers.append(ApiServer(tmp_path / "limited", msgspec.structs.replace(SETTINGS, **settings)))
        return servers[-1]

    yield opened
    for server in servers:
        server.close()


class Held:
    """Calls that block until they are released."""

    def __init__(self) -> None:
        self.begun = threading.Semaphore(0)
        self.go_on = threading.Event()

    def __call__(self, *_: object, **__: object) -> Any:
        self.begun.release()
        assert self.go_on.wait(60)
        return Ran(exit_code=0, stdout=b"", stderr=b"")


@contextmanager
def asking(server: ApiServer) -> Iterator[Callable[..., "asyncio.Task[Answer]"]]:
    """Concurrent requests."""
    loop = server._loop

    def ask(method: str, target: str, key: str, body: object) -> "asyncio.Task[Answer]":
        headers = {"host": "tests", "authorization": f"Bearer {key}", "content-type": "application/json"}
        content = msgspec.json.encode(body) if body is not None else b""
        return loop.create_task(server._asked(method, target, headers, content))

    yield ask


def finished(server: ApiServer, task: "asyncio.Task[Answer]") -> Answer:
    return server._loop.run_until_complete(asyncio.wait_for(task, 60))


def begin(server: ApiServer, held: Held, count: int) -> None:
    """Run the event loop until this many calls are waiting."""

    async def until() -> None:
        for _ in range(count):
            while not held.begun.acquire(blocking=False):
                await asyncio.sleep(0.001)

    server._loop.run_until_complete(asyncio.wait_for(until(), 60))


def test_commands_of_one_organisation_leave_room_for_others(
    opened: Opened, tenants: Tenants, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, held = opened(execs_max=8, execs_per_organisation=3), Held()
    monkeypatch.setattr(server.cloud.services.nouns.instances.guests, "run", held)
    red, blue, operator = (tenants.keys[who] for who in ("owner", "other", "operator"))
    body = {"command": ["sleep", "600"]}
    with asking(server) as ask:
        running = [ask("POST", EXEC, red, body) for _ in range(3)]
        begin(server, held, 3)
        refused = finished(server, ask("POST", EXEC, tenants.keys["member"], body))
        assert (refused.status, refused.code) == (429, "too_many"), "a key more does not help"
        assert "organisation" in refused.json["detail"]
        assert int(refused.headers["retry-after"]) >= 1
        running += [ask("POST", EXEC, blue, body) for _ in range(3)]
        begin(server, held, 3)
        assert finished(server, ask("POST", "/v1/bill/verify", operator, None)).status == 200
        held.go_on.set()
        assert [finished(server, task).status for task in running] == [200] * 6
        assert finished(server, ask("POST", EXEC, red, body)).status == 200, "what ended is free again"


def test_last_slots_are_reserved_for_operators(
    opened: Opened, tenants: Tenants, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, held = opened(execs_max=2, execs_per_organisation=2), Held()
    monkeypatch.setattr(server.cloud.services.nouns.instances.guests, "run", held)
    body = {"command": ["true"]}
    with asking(server) as ask:
        first = ask("POST", EXEC, tenants.keys["owner"], body)
        begin(server, held, 1)
        assert finished(server, ask("POST", EXEC, tenants.keys["other"], body)).status == 429
        verified = finished(server, ask("POST", "/v1/bill/verify", tenants.keys["operator"], None))
        assert verified.status == 200
        held.go_on.set()
        assert finished(server, first).status == 200


def test_writes_of_one_organisation_leave_threads_for_others(
    opened: Opened, tenants: Tenants, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, held = opened(threads=4), Held()
    monkeypatch.setattr(server.cloud.services.nouns.tenants.projects, "remove", held)
    project = tenants.ids["empty"]
    with asking(server) as ask:
        stuck = [ask("DELETE", f"/v1/projects/{project}", tenants.keys["owner"], None) for _ in range(20)]
        begin(server, held, 2)
        for who in ("other", "operator"):
            made = finished(server, ask("POST", "/v1/projects", tenants.keys[who], {"name": "new"}))
            assert made.status == 201
        held.go_on.set()
        assert [finished(server, task).status for task in stuck] == [204] * 20


def test_too_many_waiting_writes_of_one_organisation_are_refused(
    opened: Opened, tenants: Tenants, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, held = opened(threads=2), Held()
    monkeypatch.setattr(server.cloud.services.nouns.tenants.projects, "remove", held)
    monkeypatch.setattr(server.application._turns, "_waiting_max", 3)
    target = f"/v1/projects/{tenants.ids['empty']}"
    with asking(server) as ask:
        stuck = [ask("DELETE", target, tenants.keys["owner"], None) for _ in range(4)]
        begin(server, held, 1)
        refused = finished(server, ask("DELETE", target, tenants.keys["owner"], None))
        assert (refused.status, refused.code) == (429, "too_many")
        held.go_on.set()
        assert [finished(server, task).status for task in stuck] == [204] * 4


def test_all_keys_of_an_organisation_share_a_rate_and_operators_have_their_own(
    opened: Opened, tenants: Tenants
) -> None:
    server = opened(rate_per_second=1, rate_burst=3, rate_per_organisation=1)

    def statuses(who: str, times: int) -> list[int]:
        return [server.ask("GET", "/v1/whoami", tenants.keys[who]).status for _ in range(times)]

    assert statuses("owner", 3) == statuses("member", 3) == [200] * 3
    refused = server.ask("GET", "/v1/whoami", tenants.keys["viewer"])
    assert (refused.status, refused.code) == (429, "too_many")
    assert "organisation" in refused.json["detail"]
    assert statuses("other", 1) == statuses("operator", 1) == [200]


def test_invalid_keys_are_slowed_down_and_valid_ones_from_the_same_address_are_not(
    opened: Opened, tenants: Tenants
) -> None:
    server = opened(rate_per_second=100, rate_burst=1000, failed_keys_per_minute=5)
    answers = [server.ask("GET", "/v1/whoami", tenants.keys["unknown"]) for _ in range(50)]
    assert [answer.status for answer in answers[:5]] == [401] * 5
    assert (answers[-1].status, answers[-1].code) == (429, "too_many")
    for who in ("operator", "owner"):
        assert server.ask("GET", "/v1/whoami", tenants.keys[who]).status == 200


def test_a_refusal_is_logged_once_with_who_and_what_and_then_counted(
    opened: Opened, tenants: Tenants, caplog: pytest.LogCaptureFixture
) -> None:
    server = opened(rate_per_second=1, rate_burst=1)
    key = tenants.keys["viewer"]
    with caplog.at_level(logging.INFO, "teraflock.api"):
        for _ in range(300):
            server.ask("GET", "/v1/instances?project=x", key)
        server.ask("GET", f"/v1/instances/{tenants.keys['owner']}", tenants.keys["malformed"])
        server.ask("GET", "/v1/\n", tenants.keys["malformed"])
        server.cloud.services.log.sum_up(at_once=True)
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) < 10, lines
    first = next(line for line in lines if "429" in line)
    key_id = "key_" + key.split("_")[1]
    assert f"GET /v1/instances from 127.0.0.1, {key_id} of viewer@acme" in first
    assert any("more in" in line and key_id in line for line in lines)
    assert not any("\n" in line for line in lines)
    for secret in tenants.keys.values():
        if secret.startswith("tera_"):
            assert secret not in caplog.text


def test_the_access_log_has_every_request_and_no_secret(opened: Opened, tenants: Tenants) -> None:
    server = opened(access_log=True)
    owner = tenants.keys["owner"]
    server.ask("GET", "/v1/instances?limit=3", owner)
    server.ask("POST", "/v1/instances", owner, raw=b"{")
    server.ask("GET", f"/v1/instances/{owner}", owner)
    server.ask("GET", "/nowhere")
    path = server.cloud.at.folder / ACCESS_LOG_FILE
    lines = path.read_text().splitlines()
    assert len(lines) == 4
    assert "200 GET /v1/instances from 127.0.0.1, key_" in lines[0]
    assert "of owner@acme" in lines[0]
    assert "400 POST /v1/instances from" in lines[1]
    assert "404 GET /nowhere from 127.0.0.1, request" in lines[3]
    assert owner not in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600


def test_no_access_log_unless_it_is_switched_on(server: ApiServer, tenants: Tenants) -> None:
    server.ask("GET", "/v1/instances", tenants.keys["owner"])
    assert not (server.cloud.at.folder / ACCESS_LOG_FILE).exists()


def test_owner_cannot_create_unlimited_projects_or_lock_out_the_operator(
    server: ApiServer, tenants: Tenants
) -> None:
    owner, operator = tenants.keys["owner"], tenants.keys["operator"]
    made = [server.ask("POST", "/v1/projects", owner, body={"name": f"p{number}"}) for number in range(30)]
    assert [answer.status for answer in made] == [201] * 18 + [409] * 12
    assert (made[-1].code, made[-1].json["detail"]) == (
        "quota_reached",
        "The quota of organisation `acme` allows 20 projects; this would need 21",
    )
    assert all(answer.json["subnet"] == "" for answer in made[:18]), "none of them takes a network"
    body = {"name": "third", "owner": "me@third"}
    assert server.ask("POST", "/v1/organisations", operator, body=body).status == 201
    launched = server.ask("POST", "/v1/instances?project=p1", owner, body={"name": "one"})
    assert launched.status == 202
    assert server.ask("GET", "/v1/projects/p1", owner).json["subnet"].startswith("10.")


def test_reads_from_postgresql_leave_threads_for_others(
    tmp_path: Path, postgres_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On PostgreSQL, reads also run in threads."""
    server = ApiServer(
        tmp_path / "server", msgspec.structs.replace(SETTINGS, database=postgres_address, threads=4)
    )
    held = Held()
    try:
        operator = server.cloud.at.operator_key.read_text().strip()
        red, blue = (
            server.ask("POST", "/v1/organisations", operator, body={"name": name, "owner": "x"}).json["key"]
            for name in ("red", "blue")
        )
        page = server.cloud.services.nouns.instances.page
        of_red = server.ask("GET", "/v1/projects", red).json["items"][0]["id"]

        def slow(project: Any, **more: Any) -> Any:
            if project == of_red:
                held()
            return page(project, **more)

        monkeypatch.setattr(server.cloud.services.nouns.instances, "page", slow)
        with asking(server) as ask:
            stuck = [ask("GET", "/v1/instances", red, None) for _ in range(20)]
            begin(server, held, 2)
            for key in (blue, operator):
                assert finished(server, ask("GET", "/v1/instances", key, None)).status == 200
            quoted = finished(server, ask("POST", "/v1/quote", blue, {"shape": {"vcpus": 1}}))
            assert quoted.status in (200, 409), quoted
            held.go_on.set()
            assert [finished(server, task).status for task in stuck] == [200] * 20
    finally:
        held.go_on.set()
        server.close()


PLAN = {"hours": 1}


def test_plans_of_one_tenant_do_not_block_others(opened: Opened, tenants: Tenants) -> None:
    """An organisation gets one of two processes. The rest waits in a bounded queue."""
    server = opened(planners=2)
    held = Held()

    def compute(task: object) -> bytes:
        held(task)
        return b"{}"

    services = server.application.services
    planner = msgspec.structs.replace(services.planner, compute=compute)
    server.application.close()
    server.application = Application(msgspec.structs.replace(services, planner=planner))
    owner, other = tenants.keys["owner"], tenants.keys["other"]
    with asking(server) as ask:
        mine = [ask("POST", "/v1/plans", owner, PLAN) for _ in range(1 + PLANS_WAITING_MAX + 3)]
        refused = [each for each in first_answers(server, mine, 3) if each.status == 429]
        assert len(refused) == 3
        assert held.begun.acquire(timeout=60)
        theirs = ask("POST", "/v1/plans", other, PLAN)
        rates = server._loop.run_until_complete(ask("GET", "/v1/rates", owner, None))
        assert rates.status == 200, "answered while plans are computed"
        assert waited(server, held.begun.acquire), "the other tenant's plan is computed beside"
        assert not held.begun.acquire(blocking=False), "and no second one of the first tenant"
        held.go_on.set()
        answers = server._loop.run_until_complete(asyncio.gather(*mine, theirs))
    assert [each.status for each in answers].count(200) == 1 + PLANS_WAITING_MAX + 1


def first_answers(server: ApiServer, tasks: "list[asyncio.Task[Answer]]", count: int) -> list[Answer]:
    """The first `count` responses."""

    async def some() -> list[Answer]:
        found: list[Answer] = []
        for each in asyncio.as_completed(tasks):
            found.append(await each)
            if len(found) == count:
                break
        return found

    return server._loop.run_until_complete(some())


def waited(server: ApiServer, wait: Callable[..., bool]) -> bool:
    """Wait in a thread while the requests continue."""
    return server._loop.run_until_complete(asyncio.to_thread(wait, timeout=60))
