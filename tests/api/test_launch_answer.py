"""The answer to a launch is made from what was written, without reading it back. A later read answers the same."""

from tests.api.asking import ApiServer, Tenants


def test_the_answer_to_a_launch_is_what_a_read_answers(server: ApiServer, tenants: Tenants) -> None:
    body = {
        "name": "both",
        "instances": 2,
        "shape": {"vcpus": 1, "ram_bytes": 2**30, "disk_bytes": 2**30},
        "labels": {"a": "b"},
        "image": "jupyter",
        "access": "jupyter",
    }
    answer = server.ask("POST", "/v1/instances", tenants.keys["owner"], body=body)
    assert answer.status == 202
    for item in answer.json["items"]:
        read = server.ask("GET", f"/v1/instances/{item['id']}", tenants.keys["owner"])
        assert read.json == item
