"""Invalid requests: each gets one clear error in one format, and has no side effects."""

import logging
from pathlib import Path
from urllib.parse import quote

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.api.asking import SETTINGS, ApiServer, Tenants

from teraflock.api.asgi import Application
from teraflock.api.errors import STATUS_BY_CODE
from teraflock.api.routes.credit import credit_answer
from teraflock.bill.credit.model import Grant
from teraflock.tenant.model import ProjectId
from teraflock.wire.problem import Problem


def problem(answer_body: bytes) -> Problem:
    return msgspec.json.decode(answer_body, type=Problem)


def test_errors_have_one_format(server: ApiServer, tenants: Tenants) -> None:
    owner = tenants.keys["owner"]
    asked = {
        "no such path": server.ask("GET", "/v2/instances", owner),
        "no such method": server.ask("PUT", "/v1/instances", owner),
        "no key": server.ask("GET", "/v1/instances"),
        "no such thing": server.ask("GET", "/v1/instances/nowhere", owner),
        "no JSON": server.ask("POST", "/v1/instances", owner, raw=b"{"),
        "no such field": server.ask("POST", "/v1/instances", owner, body={"nmae": "web"}),
        "no such query": server.ask("GET", "/v1/instances?lmit=3", owner),
        "twice in the query": server.ask("GET", "/v1/instances?limit=3&limit=4", owner),
        "not JSON by its own word": server.ask(
            "POST", "/v1/instances", owner, raw=b"name=web", headers={"content-type": "text/plain"}
        ),
        "unknown image": server.ask("POST", "/v1/instances", owner, body={"image": "nope"}),
    }
    told = {what: (answer.status, problem(answer.body).code) for what, answer in asked.items()}
    assert told == {
        "no such path": (404, "not_found"),
        "no such method": (405, "method_not_allowed"),
        "no key": (401, "not_authenticated"),
        "no such thing": (404, "not_found"),
        "no JSON": (400, "malformed_request"),
        "no such field": (400, "malformed_request"),
        "no such query": (400, "malformed_request"),
        "twice in the query": (400, "malformed_request"),
        "not JSON by its own word": (415, "media_type_not_supported"),
        "unknown image": (422, "unknown_name"),
    }
    for answer in asked.values():
        told_problem = problem(answer.body)
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.headers["request-id"] == told_problem.request_id
        assert told_problem.detail
        assert told_problem.hint
    assert sorted(asked["no such method"].headers["allow"].split(", ")) == ["GET", "HEAD", "OPTIONS", "POST"]


def test_every_response_says_that_hosts_are_simulated(server: ApiServer) -> None:
    for answer in (
        server.ask("GET", "/v1/health"),
        server.ask("GET", "/nowhere"),
        server.ask("GET", "/v1/whoami"),
    ):
        assert answer.headers["tera-engine"] == "mixed", "only the account at a cloud is not simulated"


def test_internal_error_hides_the_traceback(
    server: ApiServer, tenants: Tenants, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def stumble(*_: object, **__: object) -> None:
        raise RuntimeError("the secret of another tenant")

    monkeypatch.setattr(server.cloud.services.nouns.instances, "page", stumble)
    with caplog.at_level(logging.ERROR, "teraflock.api"):
        answer = server.ask("GET", "/v1/instances", tenants.keys["owner"])
    assert (answer.status, answer.code) == (500, "internal_error")
    assert b"secret" not in answer.body
    assert b"Traceback" not in answer.body
    assert answer.json["request_id"] in caplog.text
    assert "the secret of another tenant" in caplog.text


def test_large_user_data_is_refused_with_the_limit(server: ApiServer, tenants: Tenants) -> None:
    body = {"name": "big", "user_data": "x" * 10_000_000}
    answer = server.ask("POST", "/v1/instances", tenants.keys["owner"], body=body)
    assert (answer.status, answer.code) == (413, "body_too_large")
    assert "65,536" in answer.json["hint"]
    assert "1,000,000" in answer.json["hint"]
    smaller = server.ask(
        "POST", "/v1/instances", tenants.keys["owner"], body={"name": "big", "user_data": "x" * 65_537}
    )
    assert smaller.status == 400
    assert "65536" in smaller.json["detail"]
    assert server.ask("GET", "/v1/instances/big", tenants.keys["owner"]).status == 404


@pytest.mark.parametrize(
    "name",
    ["a/b", "../etc", "a\n", "A", "-a", "a-", "a.b", "é", "", "a" * 64, "a\u0000", "a b", "$(id)", "`id`"],
)
def test_invalid_name_is_refused(server: ApiServer, tenants: Tenants, name: str) -> None:
    answer = server.ask("POST", "/v1/instances", tenants.keys["owner"], body={"name": name})
    assert answer.status == 400, answer
    assert "name" in answer.json["detail"]


def test_launch_without_room_suggests_what_fits(server: ApiServer, tenants: Tenants) -> None:
    owner = tenants.keys["owner"]
    large = server.ask("POST", "/v1/instances", owner, body={"shape": {"gpu": "V100", "gpus": 64}})
    assert large.status == 422
    assert "2" in large.json["hint"]
    many = server.ask("POST", "/v1/instances", owner, body={"instances": 50, "shape": {"gpu": "V100"}})
    assert many.status == 409
    assert many.json["hint"]
    quota = {"instances": 1}
    project = tenants.ids["project"]
    assert (
        server.ask("PUT", f"/v1/projects/{project}/quota", tenants.keys["operator"], body=quota).status == 200
    )
    over = server.ask("POST", "/v1/instances", owner, body={"name": "two"})
    assert (over.status, over.code) == (409, "quota_reached")
    assert "instances" in over.json["detail"]


def test_pages_have_no_gaps_or_duplicates(server: ApiServer, tenants: Tenants) -> None:
    owner = tenants.keys["owner"]
    made = server.ask("POST", "/v1/instances", owner, body={"name": "n", "instances": 6})
    assert made.status == 202
    seen: list[str] = []
    after: str | None = ""
    while after is not None:
        page = server.ask("GET", f"/v1/instances?limit=2&after={after}", owner).json
        seen += [each["id"] for each in page["items"]]
        assert len(page["items"]) <= 2
        after = page["next"]
    assert len(seen) == len(set(seen)) == 7
    assert seen == sorted(seen)


def test_rate_limited_key_gets_retry_after(furnished: tuple[Path, Tenants], tmp_path: Path) -> None:
    import shutil

    home, tenants = furnished
    shutil.copytree(home, tmp_path / "server")
    limited = msgspec.structs.replace(SETTINGS, rate_per_second=1, rate_burst=3)
    server = ApiServer(tmp_path / "server", limited)
    try:
        answers = [server.ask("GET", "/v1/whoami", tenants.keys["viewer"]) for _ in range(5)]
        assert [answer.status for answer in answers[:3]] == [200, 200, 200]
        assert (answers[-1].status, answers[-1].code) == (429, "too_many")
        assert int(answers[-1].headers["retry-after"]) >= 1
        assert server.ask("GET", "/v1/whoami", tenants.keys["owner"]).status == 200, "each key for itself"
    finally:
        server.close()


def test_metrics_count_by_route_and_never_by_path(server: ApiServer, tenants: Tenants) -> None:
    for name in ("web", "nowhere", "nowhere/else"):
        server.ask("GET", f"/v1/instances/{name}", tenants.keys["owner"])
    text = server.ask("GET", "/metrics", tenants.keys["operator"]).body.decode()
    assert 'tera_requests_total{method="GET",route="/v1/instances/{instance}",status="200"} 1.0' in text
    assert 'tera_requests_total{method="GET",route="/v1/instances/{instance}",status="404"} 1.0' in text
    assert 'tera_instances{phase="running"} 1.0' in text
    assert "nowhere" not in text
    assert "tera_request_seconds_bucket" in text


def test_metrics_are_public_if_the_setting_is_on(server: ApiServer) -> None:
    bounds = msgspec.structs.replace(server.cloud.services.bounds, metrics_open=True)
    opened = Application(msgspec.structs.replace(server.cloud.services, bounds=bounds))
    server.application, closed = opened, server.application
    closed.close()
    assert server.ask("GET", "/metrics").status == 200


# Any input gets a response and never a server error -----------------------------------------------------------------

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=80)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(ANY_TEXT, inner, max_size=4),
    max_leaves=12,
)
LAUNCH = st.fixed_dictionaries(
    {},
    optional={
        "name": st.from_regex(r"[a-z][a-z0-9-]{0,10}", fullmatch=True) | ANY_TEXT,
        "user_data": ANY_TEXT,
        "labels": st.dictionaries(ANY_TEXT, ANY_TEXT, max_size=3),
        "environment": st.dictionaries(ANY_TEXT, ANY_TEXT, max_size=3),
        "command": st.lists(ANY_TEXT, max_size=3),
        "access": st.sampled_from(["ssh", "command", "jupyter", "telnet"]),
        "authorized_keys": st.lists(ANY_TEXT, max_size=2),
        "image": st.sampled_from(["base", "tools"]) | ANY_TEXT,
        "host": ANY_TEXT,
        "instances": st.integers(-1, 3),
        "shape": st.fixed_dictionaries(
            {},
            optional={
                "vcpus": st.integers(-1, 4),
                "gpu": ANY_TEXT,
                "gpus": st.integers(-1, 3),
                "name": ANY_TEXT,
            },
        )
        | JSON,
    },
)
SMALL = settings(
    max_examples=80,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    derandomize=True,
    database=None,
)
EXPECTED = set(STATUS_BY_CODE.values()) - {500, 502, 503}


def encoded(value: object) -> bytes:
    """As JSON, including lone surrogates."""
    import json

    return json.dumps(value).encode()


@SMALL
@given(body=LAUNCH)
def test_launch_is_complete_or_refused(server: ApiServer, tenants: Tenants, body: dict[str, object]) -> None:
    owner = tenants.keys["owner"]
    before = server.ask("GET", "/v1/instances?limit=200", owner).json["items"]
    answer = server.ask("POST", "/v1/instances", owner, raw=encoded(body))
    after = server.ask("GET", "/v1/instances?limit=200", owner).json["items"]
    if answer.status == 202:
        assert len(after) - len(before) == body.get("instances", 1)
        for made in answer.json["items"]:
            assert server.ask("DELETE", f"/v1/instances/{made['id']}", owner).status == 202
        server.settle()
    else:
        assert answer.status in EXPECTED, answer
        assert problem(answer.body).detail
        assert len(after) == len(before)


@SMALL
@given(body=JSON)
def test_no_body_causes_a_server_error(server: ApiServer, tenants: Tenants, body: object) -> None:
    for method, target in (
        ("POST", "/v1/instances"),
        ("POST", "/v1/keys"),
        ("POST", "/v1/members"),
        ("PUT", "/v1/members/nobody/role"),
        ("POST", "/v1/instances/web/exec"),
        ("POST", "/v1/images"),
    ):
        answer = server.ask(method, target, tenants.keys["owner"], raw=encoded(body))
        assert answer.status in EXPECTED | {201, 202}, (target, answer)


@SMALL
@given(word=st.text(min_size=1, max_size=300), raw=st.binary(max_size=40))
def test_no_path_query_or_header_causes_a_server_error(
    server: ApiServer, tenants: Tenants, word: str, raw: bytes
) -> None:
    owner = tenants.keys["owner"]
    part = quote(word, safe="", errors="replace")
    from urllib.parse import unquote

    decoded = unquote(part)  # as a server passes it on
    if "?" not in decoded and "#" not in decoded:
        for target in (f"/v1/instances/{decoded}", f"/v1/images/{decoded}", f"/v1/projects/{decoded}/usage"):
            assert server.ask("GET", target, owner).status in (200, 404, 400, 403, 405)
    assert server.ask("GET", f"/v1/instances?project={part}", owner).status in (200, 400, 404)
    assert server.ask("GET", f"/v1/instances?{part}", owner).status in (200, 400)
    key = raw.decode("latin-1")
    assert server.ask("GET", "/v1/whoami", key).status == 401
    header = {"idempotency-key": key}
    answer = server.ask("POST", "/v1/instances", owner, body={"image": "nope"}, headers=header)
    assert answer.status in (400, 422)


FAR = ("9999-12-31T23:59:59Z", "9999-12-31T23:59:59-14:00")


@pytest.mark.parametrize("far", FAR)
def test_time_out_of_range_is_refused(server: ApiServer, tenants: Tenants, far: str) -> None:
    """Regression: one announcement with such an end made every later request fail."""
    operator, owner = tenants.keys["operator"], tenants.keys["owner"]
    asked = (
        server.ask("POST", "/v1/announcements", operator, body={"text": "hello", "until": far}),
        server.ask(
            "POST",
            f"/v1/credits?project={tenants.ids['project']}",
            operator,
            body={"micros": 1, "reason": "gift", "expires_at": far},
        ),
        server.ask("POST", "/v1/quote", owner, body={"shape": {"vcpus": 1}, "until": far}),
    )
    assert [(answer.status, answer.code) for answer in asked] == [(422, "bad_input")] * 3
    server.cloud.services.news.forget()
    told = server.ask("GET", "/v1/announcements", owner).json["items"]
    assert [each["text"] for each in told] == ["Welcome"]
    assert server.ask("GET", "/v1/credits", owner).json["items"] == []


def test_bill_lines_after_the_largest_number_are_empty(server: ApiServer, tenants: Tenants) -> None:
    for number in (2**63 - 1, 2**63, 10**99):
        answer = server.ask("GET", f"/v1/bill/lines?after={number}", tenants.keys["owner"])
        assert (answer.status, answer.json["items"]) == (200, [])


def test_a_credit_from_before_the_bound_never_expires() -> None:
    grant = Grant(
        id="crd_1", project_id=ProjectId("prj_1"), reason="gift", currency="USD", micros=1, from_us=0,
        expires_us=253_402_300_800_000_000
    )  # fmt: skip
    assert credit_answer(grant).expires_at is None
