"""The driver of a cloud that rents out machines, with the calls left open."""

from collections.abc import Iterable, Sequence
from typing import NoReturn

from teraflock.base.clock import Clock
from teraflock.drivers.rented import Remote, RentedDriver
from teraflock.instance.driver import EngineRefused, Machine, MachineType


class TemplateDriver(RentedDriver):
    def __init__(self, site: str, mark: str, clock: Clock, *, url: str, key: str) -> None:
        super().__init__(site, mark, clock)
        self._url = url
        self._key = key

    def types(self) -> Sequence[MachineType]:
        """From a table of your own, or from the last answer of the cloud. Must not call it."""
        return ()

    def _machines(self) -> Iterable[Remote]:
        """List all machines with our mark (`self._mark`) in a tag, label or name, page by page."""
        _fill_in("_machines")

    def _rent(self, machine: Machine) -> Remote:
        """Launch `machine.rental` with the mark, `machine.id` and `machine.rental.token` in a tag, label or name."""
        _fill_in("_rent")

    def _give_back(self, remote: Remote) -> None:
        """End the machine. `not found` is success; an error of authentication is not."""
        _fill_in("_give_back")


def _fill_in(method: str) -> NoReturn:
    raise EngineRefused(
        f"This driver is the template: `{method}` calls no cloud",
        hint="drivers/_template/__init__.py says what to do",
    )
