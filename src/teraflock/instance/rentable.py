"""Finds what an order can rent: the account that a provider means, its machine types, and the order's alternatives.

Machine types come from drivers, so they are read before a launch takes its locks.
"""

from collections.abc import Sequence
from typing import TypeAlias

from teraflock.base.errors import BadInput, Refused
from teraflock.instance.driver import MachineType
from teraflock.instance.engines import Engines
from teraflock.instance.launching import check_site
from teraflock.instance.model import RentalChoice
from teraflock.instance.orders import Order, wishes
from teraflock.instance.providing import at_provider, choices_of, providers_for, sites_at_provider
from teraflock.storage.database import Database
from teraflock.tenant.model import Project

Found: TypeAlias = tuple[Order, Sequence[MachineType], tuple[RentalChoice, ...]]
"""An order with its site, the machine types of that site, and all choices if there are alternatives."""


class Rentable:
    def __init__(self, database: Database, engines: Engines) -> None:
        self._database = database
        self._engines = engines

    def find(self, project: Project, order: Order) -> Found:
        """What to rent first, and what else. Own hosts need nothing of it."""
        if not order.alternatives:
            return *self._at_site(project, order), ()
        found = choices_of(self._usable(project, order), self._engines)
        return *found[0][:2], tuple(choice for _, _, choice in found)

    def providers(self, project: Project) -> frozenset[str]:
        with self._database.read() as tx:
            return providers_for(tx, self._engines, project)

    def types(self, project: Project, order: Order) -> Sequence[MachineType]:
        """The machine types of a site that the project may use."""
        with self._database.read() as tx:
            check_site(tx, self._engines, project, order)
        return self._engines.at(order.site).types()

    def _at_site(self, project: Project, order: Order) -> tuple[Order, Sequence[MachineType]]:
        if order.provider:
            with self._database.read() as tx:
                names = sites_at_provider(tx, self._engines, project, order)
            order = at_provider(order, {name: self._engines.at(name).types() for name in names})
        return order, self.types(project, order) if order.site else ()

    def _usable(self, project: Project, order: Order) -> list[tuple[Order, Sequence[MachineType]]]:
        """The order and its alternatives at sites that the project can use. Raise if there is none."""
        found: list[tuple[Order, Sequence[MachineType]]] = []
        problems: list[BadInput | Refused] = []
        for each in wishes(order):
            try:
                found.append(self._at_site(project, each))
            except (BadInput, Refused) as error:
                problems.append(error)
        if not found:
            raise problems[0]
        return found
