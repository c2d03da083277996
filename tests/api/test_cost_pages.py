"""Costs of single instances: the same as in the list of all."""

from tests.api.asking import ApiServer, Tenants
from tests.console.browser import BOOK


def test_the_cost_of_one_instance_is_that_in_the_list(server: ApiServer, tenants: Tenants) -> None:
    owner = tenants.keys["owner"]
    server.ask("PUT", "/v1/prices", tenants.keys["operator"], body={"text": BOOK})
    for vcpus in (1, 2, 3):
        body = {"name": f"of-{vcpus}", "shape": {"vcpus": vcpus}}
        assert server.ask("POST", "/v1/instances", owner, body=body).status == 202
    server.settle()
    server.cloud.services.nouns.bills.turn()  # some are metered, the next one is not
    server.ask("POST", "/v1/instances", owner, body={"name": "of-4", "shape": {"vcpus": 4}})
    server.settle()
    everything = server.ask("GET", "/v1/costs?limit=200", owner).json["items"]
    rates = {each["name"]: each["micros_per_hour"] for each in everything}
    assert len(set(rates.values()) - {0}) >= 4
    for name, rate in rates.items():
        one = server.ask("GET", f"/v1/costs?name={name}", owner).json["items"]
        assert [(each["name"], each["micros_per_hour"]) for each in one] == [(name, rate)]
