"""A server in this process, without a socket, with two tenants, all roles and one object of each kind."""

import asyncio
import re
import shutil
import sqlite3
from base64 import b64encode
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
from tests.api import one_router

from teraflock.api.asgi import Application
from teraflock.api.errors import CONTENT_TYPE
from teraflock.api.routes.all import ROUTES
from teraflock.app.settings import Place, Settings
from teraflock.app.wiring import Cloud
from teraflock.base.clock import Clock
from teraflock.bill.budget.model import Budget
from teraflock.drivers.clouds import site
from teraflock.drivers.clouds.model import Pace
from teraflock.drivers.clouds.pacing import Pacer
from teraflock.reconcile.bills import BillLoop
from teraflock.tenant.model import ProjectId
from teraflock.tenant.session.model import Browser

SETTINGS = Settings(
    engine="simulated",
    simulated_hosts="2x2xV100",
    simulated_boot_seconds=0,
    rate_per_second=0,
    loops=False,
    address_pool="203.0.113.0/28",
)

SSH_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ0ESlZ1Vhs0mJhV8r4Kc1XkCq0VhO1v1fA0y4s9Q2wX acme@laptop"
OTHER_SSH_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ0ESlZ1Vhs0mJhV8r4Kc1XkCq0VhO1v1fA0y4s9Q2wY ann@laptop"

one_router.install()
# The account `far` never answers. With the provider's rate limit, each turn of the loops would wait for a second.
site.pacer_of = lambda account, pace: Pacer(Pace(call_seconds=0, launch_seconds=0))  # type: ignore[attr-defined]


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.body)

    @property
    def code(self) -> str:
        code: str = self.json["code"]
        return code


class Asking:
    """Sends requests to the API without a socket."""

    def __init__(self, cloud: Cloud) -> None:
        self.application = Application(cloud.services)
        self._loop = asyncio.new_event_loop()

    def close(self) -> None:
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self.application.close()
        self._loop.close()

    def ask(
        self,
        method: str,
        target: str,
        key: str | None = None,
        *,
        body: object = None,
        raw: bytes | None = None,
        headers: dict[str, str] | None = None,
    ) -> Answer:
        sent = {"host": "tests", **(headers or {})}
        if key is not None:
            sent["authorization"] = f"Bearer {key}"
        content = raw if raw is not None else b"" if body is None else msgspec.json.encode(body)
        if content:
            sent.setdefault("content-type", "application/json")
        return self._loop.run_until_complete(self._asked(method, target, sent, content))

    async def _asked(self, method: str, target: str, headers: dict[str, str], content: bytes) -> Answer:
        parts = urlsplit(target)
        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "scheme": "http", "method": method,
            "root_path": "", "path": parts.path, "raw_path": parts.path.encode(),
            "query_string": parts.query.encode(), "client": ("127.0.0.1", 1), "server": ("tests", 80), "state": {},
            "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in headers.items()],
        }  # fmt: skip
        told: list[Any] = []
        parted = [content[at : at + 65_536] for at in range(0, len(content), 65_536)] or [b""]

        async def receive() -> Any:
            if not parted:  # the client stays until the response is complete
                await asyncio.Event().wait()
            part = parted.pop(0)
            return {"type": "http.request", "body": part, "more_body": bool(parted)}

        async def send(message: Any) -> None:
            told.append(message)

        await self.application.asgi(scope, receive, send)  # type: ignore[arg-type]
        got = {name.decode(): value.decode() for name, value in told[0]["headers"]}
        answer = Answer(
            status=told[0]["status"], headers=got, body=b"".join(part["body"] for part in told[1:])
        )
        if answer.body and got.get("content-type") == CONTENT_TYPE:
            check_declared(method, parts.path, answer.code)
        return answer


def check_declared(method: str, path: str, code: str) -> None:
    """Check that the route declares an error code, so that docs/openapi.json documents it."""
    for route in ROUTES:
        pattern = re.sub(r"\\{\w+\\}", "[^/]+", re.escape(route.path))
        if route.method == method and re.fullmatch(pattern, path):
            assert code in route.codes, f"{method} {route.path} does not declare `{code}`"
            return
    assert code in ("not_found", "method_not_allowed", "malformed_request")


class ApiServer(Asking):
    """A server without a socket. Its loops run only in `settle`."""

    def __init__(self, home: Path, settings: Settings = SETTINGS, clock: Clock | None = None) -> None:
        self.cloud = Cloud(Place(home), settings, clock=clock)
        super().__init__(self.cloud)

    @property
    def operator(self) -> str:
        """The key of the operator."""
        return self.cloud.at.operator_key.read_text().strip()

    def ok(self, method: str, target: str, body: object = None, key: str = "") -> Any:
        answer = self.ask(method, target, key or self.operator, body=body)
        assert answer.status < 300, answer
        return answer.json if answer.body else None

    def refused(self, method: str, target: str, body: object = None, key: str = "") -> Answer:
        answer = self.ask(method, target, key or self.operator, body=body)
        assert 400 <= answer.status < 500, answer
        return answer

    def furnish(self) -> str:
        """Build an image, and return the key of the owner of the organisation `acme`."""
        self.settle()
        self.ok("POST", "/v1/images", {"name": "base", "recipe": "base"})
        made = self.ok("POST", "/v1/organisations", {"name": "acme", "owner": "me@acme"})
        self.settle()
        return str(made["key"])

    def close(self) -> None:
        super().close()
        self.cloud.stop()

    def settle(self) -> None:
        """Run the loops until nothing is left to do."""
        from teraflock.instance.lease import store as leases

        loops = self.cloud.loops
        loops.beat()
        loops.hosts.turn()
        for _ in range(1000):
            loops.images.turn()
            for instance in loops.instances.lease():
                loops.instances.advance(instance)
            with self.cloud.database.read() as tx:
                if leases.next_due_in_all_projects(tx) is None:
                    return
        raise AssertionError("the loops do not settle")


class Tenants(msgspec.Struct, frozen=True, kw_only=True):
    """API keys by their holder, and the ids of the first tenant's objects."""

    keys: dict[str, str]
    ids: dict[str, str]


def furnish(home: Path) -> Tenants:
    server = ApiServer(home)
    try:
        return _furnished(server)
    finally:
        server.close()


def _furnished(server: ApiServer) -> Tenants:
    operator = (server.cloud.at.operator_key).read_text().strip()

    def made(method: str, target: str, key: str, body: object = None) -> Any:
        answer = server.ask(method, target, key, body=body)
        assert answer.status < 300, answer
        return answer.json if answer.body else None

    server.settle()
    made("POST", "/v1/images", operator, {"name": "base", "recipe": "base"})
    acme = made("POST", "/v1/organisations", operator, {"name": "acme", "owner": "owner@acme"})
    other = made("POST", "/v1/organisations", operator, {"name": "other", "owner": "owner@other"})
    owner = acme["key"]
    keys = {"owner": owner, "other": other["key"], "operator": operator}
    ids = {"organisation": acme["organisation"]["id"], "owner": acme["owner_id"]}
    ids["project"] = made("GET", "/v1/projects", owner)["items"][0]["id"]
    ids["empty"] = made("POST", "/v1/projects", owner, {"name": "empty"})["id"]
    for role in ("member", "viewer", "billing"):
        member = made("POST", "/v1/members", owner, {"name": f"{role}@acme", "role": role})
        keys[role] = made("POST", "/v1/keys", owner, {"name": role, "member": member["id"]})["secret"]
        ids[role] = member["id"]
    local = made("POST", "/v1/members", owner, {"name": "local@acme", "role": "member", "project": "empty"})
    keys["elsewhere"] = made("POST", "/v1/keys", owner, {"name": "local", "member": local["id"]})["secret"]
    keys["capped"] = made("POST", "/v1/keys", owner, {"name": "capped", "role_max": "viewer"})["secret"]
    for name in ("revoked", "expired", "spare"):
        key = made("POST", "/v1/keys", owner, {"name": name, "days": 1})
        keys[name], ids[name] = key["secret"], key["key"]["id"]
    made("DELETE", f"/v1/keys/{ids['revoked']}", owner)
    _expire(server.cloud.at.folder / "cloud.db", ids["expired"])
    browser = Browser("127.0.0.1", "a browser")
    ids["session"] = server.cloud.services.nouns.sessions.sign_in_with_key(owner, browser).session.id
    ids["ssh_key"] = made("POST", "/v1/ssh-keys", owner, {"public_key": SSH_KEY})["id"]
    told = made("POST", "/v1/announcements", operator, {"text": "Welcome"})
    ids["announcement"] = told["id"]
    clouds = {"name": "clouds", "kind": "simulated", "options": {"style": "cloud"}}
    made("POST", "/v1/sites", operator, clouds)
    far = {
        "name": "far",
        "provider": "lambda",
        "secret": "sk-far",
        "options": {"base_url": "http://127.0.0.1:9"},
    }
    made("POST", "/v1/accounts", operator, far)
    made("POST", "/v1/images", operator, {"name": "jupyter", "recipe": "jupyter"})
    server.settle()
    launch = {
        "name": "web",
        "shape": {"gpu": "V100"},
        "image": "jupyter",
        "access": "jupyter",
        "labels": {"team": "red"},
    }
    ids["instance"] = made("POST", "/v1/instances", owner, launch)["items"][0]["id"]
    server.settle()
    ids["snapshot"] = made("POST", "/v1/instances/web/snapshots", owner, {"name": "before"})["id"]
    server.settle()
    ids["image"] = made("POST", "/v1/images", owner, {"name": "tools", "instance": "web"})["id"]
    server.settle()
    ids["run"] = made("POST", "/v1/runs", owner, {"name": "acme-job", "command": ["train"]})["id"]
    ids["host"] = made("GET", "/v1/hosts", operator)["items"][0]["id"]
    ids["network"] = made("POST", "/v1/networks", owner, {"name": "acme-net"})["id"]
    made("POST", "/v1/subnets", owner, {"name": "acme-part", "network": "acme-net", "prefix": 24})
    ids["acl"] = made("POST", "/v1/acls", owner, {"name": "acme-border"})["id"]
    publish = {"instance": "web", "guest_port": 80}
    front = {"name": "outer", "port": 443, "target_port": 8443, "instances": ["web"]}
    ids["balancer"] = made("POST", "/v1/balancers", owner, front)["id"]
    ids["address"] = made("POST", "/v1/addresses", owner, {})["id"]
    disk = {"name": "acme-disk", "size_bytes": 1 << 30}
    ids["volume"] = made("POST", "/v1/volumes", owner, disk)["id"]
    ids["dataset"] = _pushed(made, owner)
    ids["published"] = made("POST", "/v1/published-ports", owner, publish)["id"]
    group = made("POST", "/v1/security-groups", owner, {"name": "acme-web"})
    ids["group"], ids["rule"] = group["id"], group["rules"][0]["id"]
    later = {"name": "later", "shape": {"gpu": "V100", "gpus": 2}, "instances": 2, "queue": True}
    ids["queued"] = made("POST", "/v1/instances", owner, later)["queued"]["id"]
    assert made("GET", "/v1/instances/web", owner)["state"] == "running"
    assert made("GET", "/v1/images/tools", owner)["state"] == "ready"
    _put_on_the_books(server, operator, ids)
    keys["unknown"] = owner[:-1] + ("0" if owner[-1] != "0" else "1")
    keys["malformed"] = "not-a-key"
    return Tenants(keys=keys, ids=ids)


def _pushed(made: Callable[..., Any], owner: str) -> str:
    """A dataset with one file."""

    def put(path: str, content: bytes) -> None:
        piece = {"offset": 0, "size_bytes": len(content), "content": b64encode(content).decode()}
        made("PUT", f"{path}/{sha256(content).hexdigest()}", owner, piece)

    content = b"acme-data"
    manifest = msgspec.json.encode(
        {"files": [["a", len(content), False]], "chunks": [[sha256(content).hexdigest(), len(content)]]}
    )
    put("/v1/run-files", manifest)
    wanted = {"name": "acme-data", "manifest": sha256(manifest).hexdigest()}
    id = str(made("POST", "/v1/datasets", owner, wanted)["id"])
    put(f"/v1/datasets/{id}/chunks", content)
    made("POST", f"/v1/datasets/{id}/complete", owner)
    return id


BOOK = "- {from: 2026-01-01, currency: USD, gpu: {V100: 3/hour}, vcpu: 0.01/hour, ram: 0.002/hour, disk: 1/month}\n"


def _put_on_the_books(server: ApiServer, operator: str, ids: dict[str, str]) -> None:
    """Set prices and a budget, charge an instance, and buy a month."""
    assert server.ask("PUT", "/v1/prices", operator, body={"text": BOOK}).status == 200
    BillLoop(server.cloud.services.nouns.bills, server.cloud.clock).turn()
    bills = server.cloud.services.nouns.bills
    project = ProjectId(ids["project"])
    ids["purchase"] = bills.purchases.buy(project, ids["instance"], "monthly")[0].id
    bills.budgets.set(Budget(project_id=project, currency="", micros=10**12))


def _expire(database: Path, key_id: str) -> None:
    connection = sqlite3.connect(database)
    with connection:
        changed = connection.execute("UPDATE api_key SET expires_at_us = 1 WHERE id = ?", (key_id,)).rowcount
    connection.close()
    assert changed == 1


def copied(home: Path, target: Path) -> ApiServer:
    shutil.copytree(home, target)
    return ApiServer(target)
