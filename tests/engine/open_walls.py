"""Security groups for tests of other things: every guest of the test accepts and sends everything."""

from typing import Final

from teraflock.drivers.lxd.driver import Lxd
from teraflock.network.security_group.model import Direction, GroupId, Protocol, Rule
from teraflock.network.walls import Walls

GROUP: Final = GroupId("sgr_open")
RULES: Final = tuple(Rule(direction=way, protocol=Protocol.ANY, peer="0.0.0.0/0") for way in Direction)


class OpenWalls:
    def __init__(self, driver: Lxd) -> None:
        self._driver = driver
        self._addresses: set[str] = set()

    def admit(self, address: str) -> None:
        self._addresses.add(address)
        self._driver.enforce(
            Walls(groups={GROUP: RULES}, stations=dict.fromkeys(sorted(self._addresses), (GROUP,)))
        )
