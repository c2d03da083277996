"""What an engine must do for the network rules of its instances."""

from collections.abc import Sequence
from typing import Protocol

from teraflock.network.balancer.model import BalancerSeen, BalancerSpec
from teraflock.network.walls import Walls


class WallDriver(Protocol):
    def allow_out(self, host: str, networks: tuple[str, ...]) -> None:
        """Let the guests of a host reach these networks besides the internet, and no other private ones."""
        ...

    def enforce(self, walls: Walls) -> None:
        """Make the firewall of every host enforce exactly these walls, and cut connections that they forbid.

        Guests whose address is not in them reach nothing and are not reached. Returns at once if nothing changed.
        """
        ...


class BalancerDriver(Protocol):
    """With the capability BALANCER. Both calls may be repeated."""

    def balance(self, wanted: Sequence[BalancerSpec]) -> None:
        """Make exactly these balancers run, and repair those that do not. Connections outlive a change of backends.

        When it returns, a balancer that is not wanted no longer uses its address. One that cannot run does not keep the
        others from running: it is missing in what `balancers` returns.
        """
        ...

    def balancers(self) -> Sequence[BalancerSeen]:
        """What each running balancer reports."""
        ...
