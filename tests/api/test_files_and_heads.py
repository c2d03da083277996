"""Files of instances as tar, HEAD requests, repeated query parameters, and the served OpenAPI document."""

import io
import tarfile

import pytest
from tests.api.asking import ApiServer, Tenants

from teraflock.api.openapi import document, document_json
from teraflock.fleet.model import GpuKind, HostState
from teraflock.image.model import ImageState
from teraflock.instance.model import Access, Operation
from teraflock.instance.states import Phase, Wanted


def test_file_is_sent_as_tar(server: ApiServer, tenants: Tenants) -> None:
    answer = server.ask("GET", "/v1/instances/web/archive?path=/etc/hostname", tenants.keys["owner"])
    assert (answer.status, answer.headers["content-type"]) == (200, "application/x-tar")
    with tarfile.open(fileobj=io.BytesIO(answer.body)) as tar:
        (member,) = tar.getmembers()
        content = tar.extractfile(member)
        assert content is not None
        assert (member.name, content.read()) == ("hostname", b"web\n")


@pytest.mark.parametrize(
    ("path", "status"), [("/no/such", 404), ("relative", 400), ("/a/../b", 422), ("", 400), (None, 400)]
)
def test_invalid_downloads_are_refused(
    server: ApiServer, tenants: Tenants, path: str | None, status: int
) -> None:
    query = "" if path is None else f"?path={path}"
    answer = server.ask("GET", f"/v1/instances/web/archive{query}", tenants.keys["owner"])
    assert answer.status == status, answer
    assert answer.json["hint"]


def test_head_works_for_every_get(server: ApiServer, tenants: Tenants) -> None:
    owner = tenants.keys["owner"]
    gets = [path for path, methods in document()["paths"].items() if "get" in methods and "{" not in path]
    for path in [*gets, "/v1/instances/web", "/v1/instances/web/archive?path=/etc/hostname"]:
        if path == "/v1/events/stream":
            assert server.ask("HEAD", path, owner).status == 405
            continue
        got, head = server.ask("GET", path, owner), server.ask("HEAD", path, owner)
        assert (head.status, head.body) == (got.status, b""), path
        assert head.headers["content-type"] == got.headers["content-type"], path
    assert server.ask("HEAD", "/v1/instances").status == 401
    assert server.ask("HEAD", "/v1/instances/nobody", owner).status == 404


def test_the_server_serves_its_own_document_without_a_key(server: ApiServer) -> None:
    answer = server.ask("GET", "/v1/openapi.json")
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
    assert answer.body.decode() == document_json()


def test_document_describes_enums_times_and_binaries() -> None:
    whole = document()
    fields = whole["components"]["schemas"]["InstanceAnswer"]["properties"]
    assert fields["state"]["enum"] == [str(phase) for phase in Phase]
    assert fields["wanted"]["enum"] == [str(wanted) for wanted in Wanted]
    assert fields["operation"]["anyOf"][0]["enum"] == [str(each) for each in Operation]
    schemas = whole["components"]["schemas"]
    for schema, field, words in (
        ("ImageAnswer", "state", ImageState),
        ("HostAnswer", "state", HostState),
        ("HostGpuAnswer", "kind", GpuKind),
        ("GpuAnswer", "kind", GpuKind),
        ("InstanceAnswer", "access", Access),
    ):
        assert schemas[schema]["properties"][field]["enum"] == [str(word) for word in words], schema
    for schema in schemas.values():
        for name, field in schema.get("properties", {}).items():
            kinds = field.get("anyOf", [field])
            if name.endswith("_at") and any(kind.get("type") == "string" for kind in kinds):
                assert any(kind.get("format") == "date-time" for kind in kinds), (schema["title"], name)
    pdf = whole["paths"]["/v1/invoices/{month}/pdf"]["get"]["responses"]["200"]["content"]
    assert pdf["application/pdf"]["schema"] == {"type": "string", "format": "binary"}


def test_only_list_parameters_can_be_repeated(server: ApiServer, tenants: Tenants) -> None:
    owner = tenants.keys["owner"]

    def listed(query: str) -> list[str]:
        answer = server.ask("GET", f"/v1/instances?{query}", owner)
        assert answer.status == 200, answer
        return [each["name"] for each in answer.json["items"]]

    assert listed("state=running&state=stopped&label=team%3Dred") == ["web"]
    assert listed("state=stopped") == []
    assert listed("label=team%3Dred&label=run%3D7") == []
    assert listed("name=w*b&state=running") == ["web"]
    for query in ("name=a&name=b", "state=asleep", "label=team", "name=%25", "limit=1&limit=1"):
        assert server.ask("GET", f"/v1/instances?{query}", owner).status == 400, query


def test_patch_merges_labels(server: ApiServer, tenants: Tenants) -> None:
    owner = tenants.keys["owner"]
    body = {"labels": {"team": None, "run": "7"}}
    answer = server.ask("PATCH", "/v1/instances/web", owner, body=body)
    assert (answer.status, answer.json["labels"]) == (200, {"run": "7"})
    assert server.ask("GET", "/v1/instances?label=run%3D7", owner).json["items"][0]["name"] == "web"
    assert server.ask("GET", "/v1/instances?label=team%3Dred", owner).json["items"] == []
    assert server.ask("PATCH", "/v1/instances/web", owner, body={"labels": {"": "x"}}).status == 400
