"""A launch that no host can take now is refused with the code that the API document promises."""

from tests.api.asking import ApiServer, Tenants

from teraflock.api.routes.all import ROUTES


def test_a_launch_without_free_gpus_answers_no_capacity(server: ApiServer, tenants: Tenants) -> None:
    body = {"name": "many", "instances": 2, "shape": {"gpu": "V100", "gpus": 2}}
    answer = server.ask("POST", "/v1/instances", tenants.keys["owner"], body=body)
    assert (answer.status, answer.code) == (409, "no_capacity")
    launch = next(route for route in ROUTES if route.name == "launch_instances")
    assert "no_capacity" in launch.codes
    assert "no_room" not in launch.codes
