"""Actions of operators on tenants' instances and organisations, and what tenants see of them."""

import json

import pytest
from tests.api.asking import Answer, House, Tenants

from teraflock.api.openapi import document_json
from teraflock.reconcile.organisations import OrganisationLoop


def settle(house: House) -> None:
    """Run the loops of instances and organisations until nothing is left to do."""
    nouns = house.cloud.services.nouns
    loop = OrganisationLoop(house.cloud.database, nouns.tenants.organisations, nouns.instances)
    for _ in range(4):
        loop.turn()
        house.settle()


def ask(house: House, tenants: Tenants, who: str, line: str, body: object = None) -> Answer:
    method, target = line.split(" ", 1)
    return house.ask(method, target, tenants.keys[who], body=body)


def web(house: House, tenants: Tenants) -> dict[str, object]:
    answer: dict[str, object] = ask(house, tenants, "owner", "GET /v1/instances/web").json
    return answer


def test_operator_sees_the_instances_of_every_tenant_in_pages(house: House, tenants: Tenants) -> None:
    made = ask(house, tenants, "other", "POST /v1/instances", {"name": "two", "shape": {"vcpus": 1}})
    assert made.status == 202
    first = ask(house, tenants, "operator", "GET /v1/operator/instances?limit=1").json
    second = ask(house, tenants, "operator", f"GET /v1/operator/instances?limit=1&after={first['next']}").json
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
        page = ask(house, tenants, "operator", f"GET /v1/operator/instances?{query}").json
        assert [each["instance"]["name"] for each in page["items"]] == names, query
    unknown = ask(house, tenants, "operator", "GET /v1/operator/instances?host=nowhere")
    assert (unknown.status, unknown.code) == (404, "not_found")
    assert "tera host list" in unknown.json["hint"]


def test_operators_stop_holds_until_lifted(house: House, tenants: Tenants) -> None:
    stopped = ask(
        house, tenants, "operator", "POST /v1/operator/instances/web/stop", {"reason": "it attacks others"}
    )
    assert stopped.status == 202, stopped
    settle(house)
    seen = web(house, tenants)
    assert seen["state"] == "stopped"
    assert (seen["hold"]["by"], seen["hold"]["reason"]) == ("operator", "it attacks others")  # type: ignore[index]
    refused = ask(house, tenants, "owner", "POST /v1/instances/web/start")
    assert (refused.status, refused.code) == (409, "refused")
    assert "it attacks others" in refused.json["detail"]
    settle(house)
    assert web(house, tenants)["state"] == "stopped"
    events = ask(house, tenants, "viewer", "GET /v1/instances/web/events").json["items"]
    told = next(each for each in events if each["kind"] == "instance.operated")
    assert (told["details"]["act"], told["details"]["reason"]) == ("stop", "it attacks others")
    audit = ask(house, tenants, "owner", "GET /v1/audit").json["items"]
    assert [(each["action"], each["details"]["reason"]) for each in audit if "reason" in each["details"]] == [
        ("instance.stop", "it attacks others")
    ]
    lifted = ask(
        house,
        tenants,
        "operator",
        "POST /v1/operator/instances/web/start",
        {"reason": "mended", "release_only": True},
    )
    assert lifted.json["instance"]["hold"] is None
    assert web(house, tenants)["state"] == "stopped"
    assert ask(house, tenants, "owner", "POST /v1/instances/web/start").status == 202
    settle(house)
    assert web(house, tenants)["state"] == "running"


def test_operator_can_start_and_delete_held_instances(house: House, tenants: Tenants) -> None:
    ask(house, tenants, "operator", "POST /v1/operator/instances/web/stop", {"reason": "look at it"})
    settle(house)
    ask(house, tenants, "operator", "POST /v1/operator/instances/web/start", {"reason": "all is well"})
    settle(house)
    assert (web(house, tenants)["state"], web(house, tenants)["hold"]) == ("running", None)
    gone = ask(house, tenants, "operator", "DELETE /v1/operator/instances/web?reason=abuse")
    assert gone.status == 202
    settle(house)
    assert ask(house, tenants, "owner", "GET /v1/instances/web").status == 404


def test_tenant_can_delete_a_held_instance(house: House, tenants: Tenants) -> None:
    ask(house, tenants, "operator", "POST /v1/operator/instances/web/stop", {"reason": "abuse"})
    settle(house)
    assert ask(house, tenants, "owner", "DELETE /v1/instances/web").status == 202
    settle(house)
    assert ask(house, tenants, "owner", "GET /v1/instances/web").status == 404


def test_tenant_sees_that_the_operator_read_a_log(house: House, tenants: Tenants) -> None:
    assert ask(house, tenants, "operator", "GET /v1/operator/instances/web/log").status == 400
    assert (
        ask(house, tenants, "operator", "GET /v1/operator/instances/web/log?reason=ticket%207").status == 200
    )
    events = ask(house, tenants, "owner", "GET /v1/instances/web/events").json["items"]
    assert events[-1]["details"] == {
        "name": "web",
        "act": "read_log",
        "by": "operator",
        "reason": "ticket 7",
    }


def test_name_used_by_two_tenants_is_ambiguous(house: House, tenants: Tenants) -> None:
    ask(house, tenants, "other", "POST /v1/instances", {"name": "web", "shape": {"vcpus": 1}})
    answer = ask(house, tenants, "operator", "POST /v1/operator/instances/web/stop", {"reason": "abuse"})
    assert (answer.status, answer.code) == (422, "ambiguous_name")
    assert tenants.ids["instance"] in answer.json["hint"]
    assert "acme:default" in answer.json["hint"]
    told = ask(
        house,
        tenants,
        "operator",
        "POST /v1/operator/instances/web/stop?organisation=acme",
        {"reason": "abuse"},
    )
    assert told.json["instance"]["id"] == tenants.ids["instance"]


def test_operator_must_give_a_reason(house: House, tenants: Tenants) -> None:
    answer = ask(house, tenants, "operator", f"POST /v1/instances/web/stop?project={tenants.ids['project']}")
    assert answer.status == 403
    assert "--reason" in answer.json["hint"]


def suspend(house: House, tenants: Tenants, state: str, reason: str) -> Answer:
    body = {"state": state, "reason": reason}
    return ask(house, tenants, "operator", "PUT /v1/organisations/acme/state", body)


def test_suspended_organisation_is_stopped_and_can_only_read(house: House, tenants: Tenants) -> None:
    assert suspend(house, tenants, "suspended", "unpaid").json["state"] == "suspended"
    settle(house)
    assert web(house, tenants)["state"] == "stopped"
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
        answer = ask(house, tenants, "owner", line, body)
        assert (answer.status, answer.code) == (409, "suspended"), line
        assert "unpaid" in answer.json["detail"]
    for line in ("GET /v1/instances", "GET /v1/bill", "GET /v1/focus", "GET /v1/audit"):
        assert ask(house, tenants, "owner", line).status in (200, 404), line
    assert ask(house, tenants, "other", "POST /v1/keys", {"name": "new"}).status == 201
    held = ask(house, tenants, "operator", "POST /v1/operator/instances/web/start", {"reason": "x"})
    assert held.code == "suspended"
    assert suspend(house, tenants, "active", "paid").json["state"] == "active"
    settle(house)
    assert web(house, tenants)["state"] == "stopped", "members start it themselves"
    assert ask(house, tenants, "owner", "POST /v1/instances/web/start").status == 202
    settle(house)
    assert web(house, tenants)["state"] == "running"
    actions = [each["action"] for each in ask(house, tenants, "owner", "GET /v1/audit").json["items"]]
    assert {"organisation.suspend", "organisation.resume", "instance.suspend"} <= set(actions)


def test_launch_during_a_suspension_is_stopped(house: House, tenants: Tenants) -> None:
    """A launch that commits just before the suspension is stopped without another request."""
    ask(house, tenants, "owner", "POST /v1/instances", {"name": "late", "shape": {"vcpus": 1}})
    suspend(house, tenants, "suspended", "unpaid")
    settle(house)
    late = ask(house, tenants, "owner", "GET /v1/instances/late").json
    assert late["wanted"] == "stopped"


def test_the_operators_own_organisation_cannot_be_suspended_or_deleted(
    house: House, tenants: Tenants
) -> None:
    body = {"state": "suspended", "reason": "x"}
    assert ask(house, tenants, "operator", "PUT /v1/organisations/house/state", body).code == "refused"
    answer = ask(house, tenants, "operator", "DELETE /v1/organisations/house?reason=x&force=true")
    assert answer.code == "refused"


def test_an_organisation_with_instances_is_deleted_only_by_force(house: House, tenants: Tenants) -> None:
    refused = ask(house, tenants, "operator", "DELETE /v1/organisations/acme?reason=over")
    assert (refused.status, refused.code) == (409, "refused")
    assert "1 instances and 1 images" in refused.json["detail"]
    assert web(house, tenants)["state"] == "running"
    begun = ask(house, tenants, "operator", "DELETE /v1/organisations/acme?reason=over&force=true")
    assert begun.json["state"] == "deleting"
    settle(house)
    shown = ask(house, tenants, "operator", f"GET /v1/organisations/{tenants.ids['organisation']}")
    assert shown.json["state"] == "deleted"
    assert ask(house, tenants, "owner", "GET /v1/whoami").status == 401
    names = [each["name"] for each in ask(house, tenants, "operator", "GET /v1/organisations").json["items"]]
    assert names == ["house", "other"]
    audit = ask(house, tenants, "operator", f"GET /v1/audit?organisation={tenants.ids['organisation']}")
    assert audit.json["items"], "the audit log is kept"
    for what in ("bill", "bill/lines", "invoices"):
        bill = ask(house, tenants, "operator", f"GET /v1/{what}?project={tenants.ids['project']}")
        assert bill.status == 200, "bills are kept"
    assert ask(house, tenants, "operator", f"GET /v1/projects/{tenants.ids['project']}").status == 404
    again = {"name": "acme", "owner": "owner@acme"}
    assert ask(house, tenants, "operator", "POST /v1/organisations", again).status == 201


def test_organisation_can_be_renamed(house: House, tenants: Tenants) -> None:
    def rename(name: str) -> Answer:
        body = {"name": name, "reason": "asked for"}
        return ask(house, tenants, "operator", "PUT /v1/organisations/acme/name", body)

    assert rename("other").code == "conflict"
    assert rename("acme-labs").json["name"] == "acme-labs"
    assert ask(house, tenants, "owner", "GET /v1/whoami").json["organisation_name"] == "acme-labs"
    gone = ask(house, tenants, "operator", "GET /v1/organisations/acme")
    assert gone.status == 404
    assert "acme-labs" in gone.json["hint"]


@pytest.mark.parametrize("line", ["GET /v1/projects", "GET /v1/members", "GET /v1/audit"])
def test_unknown_organisation_is_an_error(house: House, tenants: Tenants, line: str) -> None:
    by_name = ask(house, tenants, "operator", f"{line}?organisation=acme")
    by_id = ask(house, tenants, "operator", f"{line}?organisation={tenants.ids['organisation']}")
    assert by_name.json["items"] == by_id.json["items"] != []
    unknown = ask(house, tenants, "operator", f"{line}?organisation=acmee")
    assert (unknown.status, unknown.code) == (404, "not_found")
    assert "`acme`" in unknown.json["hint"]
    for name in ("other", "nobody"):
        answers = {
            (answer.status, answer.json["detail"], answer.json["hint"])
            for answer in (ask(house, tenants, "owner", f"{line}?organisation={name}"),)
        }
        assert {status for status, _, _ in answers} == {403}
    there = ask(house, tenants, "owner", f"{line}?organisation=other").json
    not_there = ask(house, tenants, "owner", f"{line}?organisation=nobody").json
    assert {**there, "request_id": ""} == {**not_there, "request_id": ""}, "a tenant learns no names"


def test_operators_name_projects_members_and_keys_of_any_organisation(house: House, tenants: Tenants) -> None:
    def operator(line: str, body: object = None) -> Answer:
        return ask(house, tenants, "operator", line, body)

    made = operator("POST /v1/projects?organisation=other", {"name": "speech"})
    assert made.status == 201
    assert operator("GET /v1/projects/speech/usage").status == 200
    assert operator("GET /v1/instances?project=other:speech").json["items"] == []
    assert operator("GET /v1/projects/empty").json["id"] == tenants.ids["empty"]
    ask(house, tenants, "other", "POST /v1/projects", {"name": "empty"})
    ambiguous = operator("GET /v1/projects/empty")
    assert ambiguous.code == "ambiguous_name"
    assert tenants.ids["empty"] in ambiguous.json["hint"]
    unknown = operator("GET /v1/projects/speach")
    assert (unknown.status, "`speech`" in unknown.json["hint"]) == (404, True)
    assert operator("POST /v1/keys", {"name": "help", "member": "viewer@acme"}).status == 201
    assert operator("DELETE /v1/keys/help").json["revoked_at"]
    assert operator("DELETE /v1/keys/first").code == "ambiguous_name"
    assert operator("POST /v1/keys", {"name": "help", "member": "viewer@acm"}).code == "not_found"


def test_tenants_get_suggestions_from_their_own_names_only(house: House, tenants: Tenants) -> None:
    near = ask(house, tenants, "owner", "GET /v1/instances?project=emptyy")
    assert (near.status, near.code) == (404, "not_found")
    assert "`empty`" in near.json["hint"]
    ask(house, tenants, "other", "POST /v1/projects", {"name": "secret"})
    theirs = ask(house, tenants, "owner", "GET /v1/instances?project=secret").json
    nobodys = ask(house, tenants, "owner", "GET /v1/instances?project=secrat").json
    assert theirs["hint"] == nobodys["hint"]
    assert theirs["detail"].replace("secret", "") == nobodys["detail"].replace("secrat", "")
    member = ask(house, tenants, "owner", "POST /v1/keys", {"name": "x", "member": "viewr@acme"})
    assert "`viewer@acme`" in member.json["hint"]
    hidden = ask(house, tenants, "elsewhere", "GET /v1/instances?project=defaul").json
    assert "default" not in hidden["hint"], "a project that the key does not reach"


def test_an_owner_revokes_a_key_by_its_name(house: House, tenants: Tenants) -> None:
    revoked = ask(house, tenants, "owner", "DELETE /v1/keys/spare")
    assert revoked.json["id"] == tenants.ids["spare"]
    assert ask(house, tenants, "owner", "DELETE /v1/keys/spare").status == 404
    assert ask(house, tenants, "other", "DELETE /v1/keys/member").status == 404


def test_announcement_header_is_sent_only_to_its_audience(house: House, tenants: Tenants) -> None:
    def news(who: str) -> str:
        return ask(house, tenants, who, "GET /v1/whoami").headers.get("tera-news", "")

    assert news("owner") == tenants.ids["announcement"]
    body = {"text": "Only for acme", "organisation": "acme"}
    made = ask(house, tenants, "operator", "POST /v1/announcements", body).json
    assert (news("viewer"), news("other"), news("operator")) == (made["id"], tenants.ids["announcement"], "")
    seen = ask(house, tenants, "other", "GET /v1/announcements").json["items"]
    assert [each["text"] for each in seen] == ["Welcome"]
    for id in (made["id"], tenants.ids["announcement"]):
        assert ask(house, tenants, "operator", f"DELETE /v1/announcements/{id}").status == 204
    assert news("owner") == ""
    assert ask(house, tenants, "operator", f"DELETE /v1/announcements/{made['id']}").status == 404
    past = {"text": "late", "until": "2020-01-01T00:00:00Z"}
    assert ask(house, tenants, "operator", "POST /v1/announcements", past).code == "bad_input"


def test_timed_out_command_is_reported(house: House, tenants: Tenants) -> None:
    slow = {"command": ["sleep", "100"], "seconds_max": 1}
    answer = ask(house, tenants, "owner", "POST /v1/instances/web/exec", slow).json
    assert (answer["exit_code"], answer["timed_out"]) == (124, True)
    quick = ask(house, tenants, "owner", "POST /v1/instances/web/exec", {"command": ["true"]}).json
    assert (quick["exit_code"], quick["timed_out"]) == (0, False)


def test_error_about_a_name_hides_the_regular_expression(house: House, tenants: Tenants) -> None:
    answer = ask(house, tenants, "owner", "POST /v1/members", {"name": "x y", "role": "viewer"})
    assert (answer.status, answer.code) == (400, "malformed_request")
    assert answer.json["detail"] == ("Invalid request body: `name` has an invalid format or character")


def test_hints_name_fields_of_the_api(house: House, tenants: Tenants) -> None:
    for body, field in (
        ({"access": "command"}, "`command`"),
        ({"command": ["true"]}, "`access`"),
        ({"shape": {"gpus": 2}}, "`gpu`"),
    ):
        answer = ask(house, tenants, "owner", "POST /v1/instances", body)
        assert answer.status == 422
        assert field in answer.json["hint"], answer.json
        assert "--" not in answer.json["detail"]


def test_invalid_reason_is_refused_as_documented(house: House, tenants: Tenants) -> None:
    answer = ask(house, tenants, "operator", "DELETE /v1/organisations/acme?reason=%E2%80%8B")
    assert (answer.status, answer.code) == (422, "bad_input")
    declared = json.loads(document_json())["paths"]["/v1/organisations/{organisation}"]["delete"]["responses"]
    assert "422" in declared
