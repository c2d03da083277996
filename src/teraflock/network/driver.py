"""What an engine must do for the network rules of its instances."""

from typing import Protocol

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
