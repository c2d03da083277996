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
        assert "untested live" in listed.tested


def test_a_provider_without_a_driver_says_so() -> None:
    assert (renting("oci").launch, renting("oci").missing) == (False, "there is no driver yet")
