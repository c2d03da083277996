"""Actions of operators on tenants' instances and organisations, and what tenants see of them."""

import json

import pytest
from tests.api.asking import Answer, ApiServer, Tenants

from teraflock.api.openapi import document_json
from teraflock.reconcile.organisations import OrganisationLoop


def settle(server: ApiServer) -> None:
    """Run the loops of instances and organisations until nothing is left to do."""
    nouns = server.cloud.services.nouns
    loop = OrganisationLoop(server.cloud.database, nouns.tenants.organisations, nouns.instances)
    for _ in range(4):
        loop.turn()
        server.settle()


def ask(server: ApiServer, tenants: Tenants, who: str, line: str, body: object = None) -> Answer:
    method, target = line.split(" ", 1)
    return server.ask(method, target, tenants.keys[who], body=body)


def web(server: ApiServer, tenants: Tenants) -> dict[str, object]:
    answer: dict[str, object] = ask(server, tenants, "owner", "GET /v1/instances/web").json
    return answer


def test_operator_sees_the_instances_of_every_tenant_in_pages(server: ApiServer, tenants: Tenants) -> None:
    made = ask(server, tenants, "other", "POST /v1/instances", {"name": "two", "shape": {"vcpus": 1}})
    assert made.status == 202
    first = ask(server, tenants, "operator", "GET /v1/operator/instances?limit=1").json
    second = ask(
        server, tenants, "operator", f"GET /v1/operator/instances?limit=1&after={first['next']}"
    ).json
    found = [*first["items"], *second["items"]]
    assert second["next"] is None
    assert [(each["organisation"], each["project"], each["instance"]["name"]) for each in found] == [
        ("acme", "default", "web"),
        ("other", "default", "two"),
    ]
    host = found[0]["instance"]["host"]
    for query, names in (
        ("organisation=other", ["two"]),
        (f"host={host}&organisation=acme", ["web"]),
        ("state=stopped", []),
        ("project=acme:default", ["web"]),
    ):
        page = ask(server, tenants, "operator", f"GET /v1/operator/instances?{query}").json
        assert [each["instance"]["name"] for each in page["items"]] == names, query
    unknown = ask(server, tenants, "operator", "GET /v1/operator/instances?host=nowhere")
    assert (unknown.status, unknown.code) == (404, "not_found")
    assert "tera host list" in unknown.json["hint"]


def test_operators_stop_holds_until_lifted(server: ApiServer, tenants: Tenants) -> None:
    stopped = ask(
        server, tenants, "operator", "POST /v1/operator/instances/web/stop", {"reason": "it attacks others"}
    )
    assert stopped.status == 202, stopped
    settle(server)
    seen = web(server, tenants)
    assert seen["state"] == "stopped"
    assert (seen["hold"]["by"], seen["hold"]["reason"]) == ("operator", "it attacks others")  # type: ignore[index]
    refused = ask(server, tenants, "owner", "POST /v1/instances/web/start")
    assert (refused.status, refused.code) == (409, "refused")
    assert "it attacks others" in refused.json["detail"]
    settle(server)
    assert web(server, tenants)["state"] == "stopped"
    events = ask(server, tenants, "viewer", "GET /v1/instances/web/events").json["items"]
    told = next(each for each in events if each["kind"] == "instance.operated")
    assert (told["details"]["act"], told["details"]["reason"]) == ("stop", "it attacks others")
    audit = ask(server, tenants, "owner", "GET /v1/audit").json["items"]
    assert [(each["action"], each["details"]["reason"]) for each in audit if "reason" in each["details"]] == [
        ("instance.stop", "it attacks others")
    ]
    lifted = ask(
        server,
        tenants,
        "operator",
        "POST /v1/operator/instances/web/start",
        {"reason": "mended", "release_only": True},
    )
    assert lifted.json["instance"]["hold"] is None
    assert web(server, tenants)["state"] == "stopped"
    assert ask(server, tenants, "owner", "POST /v1/instances/web/start").status == 202
    settle(server)
    assert web(server, tenants)["state"] == "running"


def test_operator_can_start_and_delete_held_instances(server: ApiServer, tenants: Tenants) -> None:
    ask(server, tenants, "operator", "POST /v1/operator/instances/web/stop", {"reason": "look at it"})
    settle(server)
    ask(server, tenants, "operator", "POST /v1/operator/instances/web/start", {"reason": "all is well"})
    settle(server)
    assert (web(server, tenants)["state"], web(server, tenants)["hold"]) == ("running", None)
    gone = ask(server, tenants, "operator", "DELETE /v1/operator/instances/web?reason=abuse")
    assert gone.status == 202
    settle(server)
    assert ask(server, tenants, "owner", "GET /v1/instances/web").status == 404


def test_tenant_can_delete_a_held_instance(server: ApiServer, tenants: Tenants) -> None:
    ask(server, tenants, "operator", "POST /v1/operator/instances/web/stop", {"reason": "abuse"})
    settle(server)
    assert ask(server, tenants, "owner", "DELETE /v1/instances/web").status == 202
    settle(server)
    assert ask(server, tenants, "owner", "GET /v1/instances/web").status == 404


def test_tenant_sees_that_the_operator_read_a_log(server: ApiServer, tenants: Tenants) -> None:
    assert ask(server, tenants, "operator", "GET /v1/operator/instances/web/log").status == 400
    assert (
        ask(server, tenants, "operator", "GET /v1/operator/instances/web/log?reason=ticket%207").status == 200
    )
    events = ask(server, tenants, "owner", "GET /v1/instances/web/events").json["items"]
    assert events[-1]["details"] == {
        "name": "web",
        "act": "read_log",
        "by": "operator",
        "reason": "ticket 7",
    }


def test_name_used_by_two_tenants_is_ambiguous(server: ApiServer, tenants: Tenants) -> None:
    ask(server, tenants, "other", "POST /v1/instances", {"name": "web", "shape": {"vcpus": 1}})
    answer = ask(server, tenants, "operator", "POST /v1/operator/instances/web/stop", {"reason": "abuse"})
    assert (answer.status, answer.code) == (422, "ambiguous_name")
    assert tenants.ids["instance"] in answer.json["hint"]
    assert "acme:default" in answer.json["hint"]
    told = ask(
        server,
        tenants,
        "operator",
        "POST /v1/operator/instances/web/stop?organisation=acme",
        {"reason": "abuse"},
    )
    assert told.json["instance"]["id"] == tenants.ids["instance"]


def test_operator_must_give_a_reason(server: ApiServer, tenants: Tenants) -> None:
    answer = ask(server, tenants, "operator", f"POST /v1/instances/web/stop?project={tenants.ids['project']}")
    assert answer.status == 403
    assert "--reason" in answer.json["hint"]


def suspend(server: ApiServer, tenants: Tenants, state: str, reason: str) -> Answer:
    body = {"state": state, "reason": reason}
    return ask(server, tenants, "operator", "PUT /v1/organisations/acme/state", body)


def test_suspended_organisation_is_stopped_and_can_only_read(server: ApiServer, tenants: Tenants) -> None:
    assert suspend(server, tenants, "suspended", "unpaid").json["state"] == "suspended"
    settle(server)
    assert web(server, tenants)["state"] == "stopped"
    for line, body in (
        ("POST /v1/instances/web/start", None),
        ("POST /v1/instances", {"name": "new", "shape": {"vcpus": 1}}),
        ("POST /v1/keys", {"name": "new"}),
        ("POST /v1/images", {"name": "new", "recipe": "jupyter"}),
        ("POST /v1/images", {"name": "new", "instance": "web"}),
        ("POST /v1/instances/web/resize", {"shape": {"disk_bytes": 100 << 30}}),
        ("POST /v1/instances/web/snapshots", {"name": "new"}),
        ("POST /v1/projects", {"name": "new"}),
    ):
        answer = ask(server, tenants, "owner", line, body)
        assert (answer.status, answer.code) == (409, "suspended"), line
        assert "unpaid" in answer.json["detail"]
    for line in ("GET /v1/instances", "GET /v1/bill", "GET /v1/focus", "GET /v1/audit"):
        assert ask(server, tenants, "owner", line).status in (200, 404), line
    assert ask(server, tenants, "other", "POST /v1/keys", {"name": "new"}).status == 201
    held = ask(server, tenants, "operator", "POST /v1/operator/instances/web/start", {"reason": "x"})
    assert held.code == "suspended"
    assert suspend(server, tenants, "active", "paid").json["state"] == "active"
    settle(server)
    assert web(server, tenants)["state"] == "stopped", "members start it themselves"
    assert ask(server, tenants, "owner", "POST /v1/instances/web/start").status == 202
    settle(server)
    assert web(server, tenants)["state"] == "running"
    actions = [each["action"] for each in ask(server, tenants, "owner", "GET /v1/audit").json["items"]]
    assert {"organisation.suspend", "organisation.resume", "instance.suspend"} <= set(actions)


def test_launch_during_a_suspension_is_stopped(server: ApiServer, tenants: Tenants) -> None:
    """A launch that commits just before the suspension is stopped without another request."""
    ask(server, tenants, "owner", "POST /v1/instances", {"name": "late", "shape": {"vcpus": 1}})
    suspend(server, tenants, "suspended", "unpaid")
    settle(server)
    late = ask(server, tenants, "owner", "GET /v1/instances/late").json
    assert late["wanted"] == "stopped"


def test_the_operators_own_organisation_cannot_be_suspended_or_deleted(
    server: ApiServer, tenants: Tenants
) -> None:
    body = {"state": "suspended", "reason": "x"}
    assert ask(server, tenants, "operator", "PUT /v1/organisations/operator/state", body).code == "refused"
    answer = ask(server, tenants, "operator", "DELETE /v1/organisations/operator?reason=x&force=true")
    assert answer.code == "refused"


def test_an_organisation_with_instances_is_deleted_only_by_force(server: ApiServer, tenants: Tenants) -> None:
    refused = ask(server, tenants, "operator", "DELETE /v1/organisations/acme?reason=over")
    assert (refused.status, refused.code) == (409, "refused")
    assert "1 instances and 1 images" in refused.json["detail"]
    assert web(server, tenants)["state"] == "running"
    begun = ask(server, tenants, "operator", "DELETE /v1/organisations/acme?reason=over&force=true")
    assert begun.json["state"] == "deleting"
    settle(server)
    shown = ask(server, tenants, "operator", f"GET /v1/organisations/{tenants.ids['organisation']}")
    assert shown.json["state"] == "deleted"
    assert ask(server, tenants, "owner", "GET /v1/whoami").status == 401
    names = [each["name"] for each in ask(server, tenants, "operator", "GET /v1/organisations").json["items"]]
    assert names == ["operator", "other"]
    audit = ask(server, tenants, "operator", f"GET /v1/audit?organisation={tenants.ids['organisation']}")
    assert audit.json["items"], "the audit log is kept"
    for what in ("bill", "bill/lines", "invoices"):
        bill = ask(server, tenants, "operator", f"GET /v1/{what}?project={tenants.ids['project']}")
        assert bill.status == 200, "bills are kept"
    assert ask(server, tenants, "operator", f"GET /v1/projects/{tenants.ids['project']}").status == 404
    again = {"name": "acme", "owner": "owner@acme"}
    assert ask(server, tenants, "operator", "POST /v1/organisations", again).status == 201


def test_organisation_can_be_renamed(server: ApiServer, tenants: Tenants) -> None:
    def rename(name: str) -> Answer:
        body = {"name": name, "reason": "asked for"}
        return ask(server, tenants, "operator", "PUT /v1/organisations/acme/name", body)

    assert rename("other").code == "conflict"
    assert rename("acme-labs").json["name"] == "acme-labs"
    assert ask(server, tenants, "owner", "GET /v1/whoami").json["organisation_name"] == "acme-labs"
    gone = ask(server, tenants, "operator", "GET /v1/organisations/acme")
    assert gone.status == 404
    assert "acme-labs" in gone.json["hint"]


@pytest.mark.parametrize("line", ["GET /v1/projects", "GET /v1/members", "GET /v1/audit"])
def test_unknown_organisation_is_an_error(server: ApiServer, tenants: Tenants, line: str) -> None:
    by_name = ask(server, tenants, "operator", f"{line}?organisation=acme")
    by_id = ask(server, tenants, "operator", f"{line}?organisation={tenants.ids['organisation']}")
    assert by_name.json["items"] == by_id.json["items"] != []
    unknown = ask(server, tenants, "operator", f"{line}?organisation=acmee")
    assert (unknown.status, unknown.code) == (404, "not_found")
    assert "`acme`" in unknown.json["hint"]
    for name in ("other", "nobody"):
        answers = {
            (answer.status, answer.json["detail"], answer.json["hint"])
            for answer in (ask(server, tenants, "owner", f"{line}?organisation={name}"),)
        }
        assert {status for status, _, _ in answers} == {403}
    there = ask(server, tenants, "owner", f"{line}?organisation=other").json
    not_there = ask(server, tenants, "owner", f"{line}?organisation=nobody").json
    assert {**there, "request_id": ""} == {**not_there, "request_id": ""}, "a tenant learns no names"


def test_operators_name_projects_members_and_keys_of_any_organisation(
    server: ApiServer, tenants: Tenants
) -> None:
    def operator(line: str, body: object = None) -> Answer:
        return ask(server, tenants, "operator", line, body)

    made = operator("POST /v1/projects?organisation=other", {"name": "speech"})
    assert made.status == 201
    assert operator("GET /v1/projects/speech/usage").status == 200
    assert operator("GET /v1/instances?project=other:speech").json["items"] == []
    assert operator("GET /v1/projects/empty").json["id"] == tenants.ids["empty"]
    ask(server, tenants, "other", "POST /v1/projects", {"name": "empty"})
    ambiguous = operator("GET /v1/projects/empty")
    assert ambiguous.code == "ambiguous_name"
    assert tenants.ids["empty"] in ambiguous.json["hint"]
    unknown = operator("GET /v1/projects/speach")
    assert (unknown.status, "`speech`" in unknown.json["hint"]) == (404, True)
    assert operator("POST /v1/keys", {"name": "help", "member": "viewer@acme"}).status == 201
    assert operator("DELETE /v1/keys/help").json["revoked_at"]
    assert operator("DELETE /v1/keys/first").code == "ambiguous_name"
    assert operator("POST /v1/keys", {"name": "help", "member": "viewer@acm"}).code == "not_found"


def test_tenants_get_suggestions_from_their_own_names_only(server: ApiServer, tenants: Tenants) -> None:
    near = ask(server, tenants, "owner", "GET /v1/instances?project=emptyy")
    assert (near.status, near.code) == (404, "not_found")
    assert "`empty`" in near.json["hint"]
    ask(server, tenants, "other", "POST /v1/projects", {"name": "secret"})
    theirs = ask(server, tenants, "owner", "GET /v1/instances?project=secret").json
    nobodys = ask(server, tenants, "owner", "GET /v1/instances?project=secrat").json
    assert theirs["hint"] == nobodys["hint"]
    assert theirs["detail"].replace("secret", "") == nobodys["detail"].replace("secrat", "")
    member = ask(server, tenants, "owner", "POST /v1/keys", {"name": "x", "member": "viewr@acme"})
    assert "`viewer@acme`" in member.json["hint"]
    hidden = ask(server, tenants, "elsewhere", "GET /v1/instances?project=defaul").json
    assert "default" not in hidden["hint"], "a project that the key does not reach"


def test_an_owner_revokes_a_key_by_its_name(server: ApiServer, tenants: Tenants) -> None:
    revoked = ask(server, tenants, "owner", "DELETE /v1/keys/spare")
    assert revoked.json["id"] == tenants.ids["spare"]
    assert ask(server, tenants, "owner", "DELETE /v1/keys/spare").status == 404
    assert ask(server, tenants, "other", "DELETE /v1/keys/member").status == 404


def test_announcement_header_is_sent_only_to_its_audience(server: ApiServer, tenants: Tenants) -> None:
    def news(who: str) -> str:
        return ask(server, tenants, who, "GET /v1/whoami").headers.get("tera-news", "")

    assert news("owner") == tenants.ids["announcement"]
    body = {"text": "Only for acme", "organisation": "acme"}
    made = ask(server, tenants, "operator", "POST /v1/announcements", body).json
    assert (news("viewer"), news("other"), news("operator")) == (made["id"], tenants.ids["announcement"], "")
    seen = ask(server, tenants, "other", "GET /v1/announcements").json["items"]
    assert [each["text"] for each in seen] == ["Welcome"]
    for id in (made["id"], tenants.ids["announcement"]):
        assert ask(server, tenants, "operator", f"DELETE /v1/announcements/{id}").status == 204
    assert news("owner") == ""
    assert ask(server, tenants, "operator", f"DELETE /v1/announcements/{made['id']}").status == 404
    past = {"text": "late", "until": "2020-01-01T00:00:00Z"}
    assert ask(server, tenants, "operator", "POST /v1/announcements", past).code == "bad_input"


def test_timed_out_command_is_reported(server: ApiServer, tenants: Tenants) -> None:
    slow = {"command": ["sleep", "100"], "seconds_max": 1}
    answer = ask(server, tenants, "owner", "POST /v1/instances/web/exec", slow).json
    assert (answer["exit_code"], answer["timed_out"]) == (124, True)
    quick = ask(server, tenants, "owner", "POST /v1/instances/web/exec", {"command": ["true"]}).json
    assert (quick["exit_code"], quick["timed_out"]) == (0, False)


def test_error_about_a_name_hides_the_regular_expression(server: ApiServer, tenants: Tenants) -> None:
    answer = ask(server, tenants, "owner", "POST /v1/members", {"name": "x y", "role": "viewer"})
    assert (answer.status, answer.code) == (400, "malformed_request")
    assert answer.json["detail"] == ("Invalid request body: `name` has an invalid format or character")


def test_hints_name_fields_of_the_api(server: ApiServer, tenants: Tenants) -> None:
    for body, field in (
        ({"access": "command"}, "`command`"),
        ({"command": ["true"]}, "`access`"),
        ({"shape": {"gpus": 2}}, "`gpu`"),
    ):
        answer = ask(server, tenants, "owner", "POST /v1/instances", body)
        assert answer.status == 422
        assert field in answer.json["hint"], answer.json
        assert "--" not in answer.json["detail"]


def test_invalid_reason_is_refused_as_documented(server: ApiServer, tenants: Tenants) -> None:
    answer = ask(server, tenants, "operator", "DELETE /v1/organisations/acme?reason=%E2%80%8B")
    assert (answer.status, answer.code) == (422, "bad_input")
    declared = json.loads(document_json())["paths"]["/v1/organisations/{organisation}"]["delete"]["responses"]
    assert "422" in declared
