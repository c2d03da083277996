"""The networks that an operator may open to instances."""

import pytest

from teraflock.base.errors import BadInput
from teraflock.fleet.service import ALLOW_OUT_MAX, checked_networks


def test_networks_are_unique_canonical_and_sorted() -> None:
    given = ["192.168.10.0/24", "10.1.2.3", "10.1.2.3/32"]
    assert checked_networks(given) == ("10.1.2.3/32", "192.168.10.0/24")


@pytest.mark.parametrize(
    "text",
    ["", "lab", "192.168.10.7/24", "fe80::/10", "0.0.0.0/0", "169.254.169.254/32", "127.0.0.1", "239.0.0.1"],
)
def test_invalid_and_blocked_networks_are_refused(text: str) -> None:
    with pytest.raises(BadInput):
        checked_networks([text])


def test_number_of_networks_is_limited() -> None:
    with pytest.raises(BadInput):
        checked_networks([f"10.0.0.{number}/32" for number in range(ALLOW_OUT_MAX + 1)])
