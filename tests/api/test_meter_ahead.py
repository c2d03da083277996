"""The meter of some instances is the same as in the meter of the whole project, also before the meter has read them."""

from tests.api.asking import ApiServer, Tenants

from teraflock.bill import store as bills
from teraflock.meter.ahead import ahead
from teraflock.tenant.model import ProjectId


def test_the_meter_of_some_instances_is_that_of_the_project(server: ApiServer, tenants: Tenants) -> None:
    key, project = tenants.keys["owner"], ProjectId(tenants.ids["project"])
    small = {"name": "new", "shape": {"vcpus": 1}}
    assert server.ask("POST", "/v1/instances", key, body=small).status == 202
    server.settle()
    assert server.ask("POST", "/v1/instances/web/stop", key).status == 202
    server.settle()  # the meter has read neither the new instance nor the stop
    new = server.ask("GET", "/v1/instances/new", key).json["id"]
    with server.cloud.database.read() as tx:
        for number in (0, bills.cursor(tx).intervals):
            whole = ahead(tx, project, number)
            assert {new, tenants.ids["instance"]} <= {each.instance_id for each in whole.open}
            for id in (new, tenants.ids["instance"], tenants.ids["address"]):
                some = ahead(tx, project, number, only=(id,))
                assert some.open == tuple(each for each in whole.open if each.instance_id == id)
                assert some.closed == tuple(each for each in whole.closed if each.instance_id == id)
        assert ahead(tx, project, 0, only=()).open == ()
