"""Pages are cached between requests. Whatever happens to instances, a cached page equals a fresh one."""

from collections.abc import Callable
from typing import Any

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.api.asking import ApiServer, Tenants

from teraflock.api.convert.instance import instance_answer, instance_page
from teraflock.tenant.model import ProjectId
from teraflock.wire.instance import InstancePage

Act = Callable[[ApiServer, str], Any]

ACTS: dict[str, Act] = {
    "launch": lambda server, key: server.ask("POST", "/v1/instances", key, body={"labels": {"a": "b"}}),
    "stop": lambda server, key: server.ask("POST", "/v1/instances/web/stop", key),
    "start": lambda server, key: server.ask("POST", "/v1/instances/web/start", key),
    "restart": lambda server, key: server.ask("POST", "/v1/instances/web/restart", key),
    "grow": lambda server, key: server.ask(
        "POST", "/v1/instances/web/resize", key, body={"shape": {"vcpus": 3}}
    ),
    "fewer cards": lambda server, key: server.ask(
        "POST", "/v1/instances/web/resize", key, body={"shape": {"gpus": 0}}
    ),
    "cards": lambda server, key: server.ask(
        "POST", "/v1/instances/web/resize", key, body={"shape": {"gpu": "V100", "gpus": 2}}
    ),
    "restore": lambda server, key: server.ask(
        "POST", "/v1/instances/web/restore", key, body={"snapshot": "before"}
    ),
    "delete": lambda server, key: server.ask("DELETE", "/v1/instances/web", key),
    "step": lambda server, key: one_step(server),
    "settle": lambda server, key: server.settle(),
}


def one_step(server: ApiServer) -> None:
    """Lease what is due, and advance only one instance."""
    loop = server.cloud.loops.instances
    leased = loop.lease()
    if leased:
        loop.advance(leased[0])


@settings(
    max_examples=40,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    derandomize=True,
    database=None,
)
@given(st.lists(st.sampled_from(sorted(ACTS)), max_size=12))
def test_cached_page_matches_the_database(server: ApiServer, tenants: Tenants, acts: list[str]) -> None:
    owner, project = tenants.keys["owner"], ProjectId(tenants.ids["project"])
    services = server.cloud.services
    for act in acts:
        ACTS[act](server, owner)
        for gone in (False, True):
            shown = services.nouns.instances.page(project, limit=200, gone=gone)
            anew = services.nouns_on(services.database).instances.page(project, limit=200, gone=gone)
            assert shown == anew
            answers = msgspec.json.decode(instance_page(shown, None, enters=True), type=InstancePage)
            assert answers.items == tuple(instance_answer(view, enters=True) for view in anew)
    server.settle()
    if server.ask("GET", "/v1/instances/web", owner).status == 404:
        server.ask("POST", "/v1/instances", owner, body={"name": "web", "shape": {"gpu": "V100"}})
        server.settle()
