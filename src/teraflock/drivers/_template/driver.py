"""The driver of a cloud that rents out machines, without the API calls."""

from collections.abc import Iterable, Sequence
from typing import NoReturn

from teraflock.base.clock import Clock
from teraflock.drivers.rented import Remote, RentedDriver
from teraflock.instance.driver import Machine, MachineType
from teraflock.instance.engine_errors import EngineRefused


class TemplateDriver(RentedDriver):
    def __init__(self, site: str, mark: str, clock: Clock, *, url: str, key: str) -> None:
        super().__init__(site, mark, clock)
        self._url = url
        self._key = key

    def types(self) -> Sequence[MachineType]:
        """Return the types from your own table, or from the cloud's last response. Must not call the cloud."""
        return ()

    def _machines(self) -> Iterable[Remote]:
        """List all machines with our mark (`self._mark`) in a tag, label or name. Read every page."""
        _fill_in("_machines")

    def _rent(self, machine: Machine) -> Remote:
        """Launch `machine.rental`. Put the mark, `machine.id` and `machine.rental.token` in a tag, label or
        name."""
        _fill_in("_rent")

    def _give_back(self, remote: Remote) -> None:
        """Terminate the machine. Treat `not found` as success, but not an authentication error."""
        _fill_in("_give_back")


def _fill_in(method: str) -> NoReturn:
    raise EngineRefused(
        f"This driver is a template: `{method}` is not implemented",
        hint="See drivers/_template/__init__.py",
    )
