"""`tera providers` says of each cloud what its driver can do."""

from teraflock.catalog.providers import all_providers
from teraflock.catalog.renting import RENTING, renting
from teraflock.drivers.clouds.site import cloud_class
from teraflock.drivers.clouds.table import CLOUDS
from teraflock.instance.driver import Capability


def test_every_driver_is_listed_and_nothing_else() -> None:
    assert sorted(RENTING) == sorted(CLOUDS)
    assert set(RENTING) <= {each.id for each in all_providers()}


def test_what_is_listed_is_what_the_drivers_can() -> None:
    for kind in CLOUDS:
        cloud, listed = cloud_class(kind), RENTING[kind]
        assert cloud.kind == kind
        assert listed.stop == (Capability.STOP in cloud.capabilities)
        assert ("bid" in listed.spot) == (Capability.BIDS in cloud.capabilities)
        assert listed.notice == (cloud.notice is not None)
        assert listed.time_limit == cloud.has_time_limit
        assert listed.currency == cloud.currency
        assert ("currency" in cloud.options) == (listed.currency != "USD")
        assert listed.catalog == ("prices" not in cloud.options)
        assert "untested live" in listed.tested
        assert listed.tested_in_short.endswith(", not live")


def test_a_provider_without_a_driver_says_so() -> None:
    assert (renting("crusoe").launch, renting("crusoe").missing) == (False, "there is no driver yet")


def test_fourteen_providers_can_be_rented_from_and_say_what_is_missing() -> None:
    assert len(RENTING) == 14
    assert all(each.launch and each.tested and each.missing for each in RENTING.values())
