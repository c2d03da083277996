"""From a provider in an order to the account and machine type to rent: the cheapest that the project may use.

Machine types come from drivers, so they are read outside of transactions.
"""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from teraflock.base.errors import BadInput, Refused, UnknownName, suggestion
from teraflock.instance.account import store as accounts
from teraflock.instance.candidates import can_run, choice_of
from teraflock.instance.driver import MachineType
from teraflock.instance.engines import Engines
from teraflock.instance.model import RentalChoice
from teraflock.instance.orders import Order, ShapeWish
from teraflock.instance.renting import cheapest, choose
from teraflock.instance.site import store as sites
from teraflock.storage.database import Transaction
from teraflock.tenant.model import Project


def usable_sites(tx: Transaction, engines: Engines, project: Project) -> frozenset[str]:
    """The sites at which a project may rent machines."""
    shared = accounts.names_for(tx, project.id)
    return frozenset(sites.names_for(tx, project.organisation_id) | shared | engines.for_all)


def providers_for(tx: Transaction, engines: Engines, project: Project) -> frozenset[str]:
    """The providers at which a project may rent machines."""
    allowed = usable_sites(tx, engines, project)
    return frozenset(
        record.kind for name, record in engines.records.items() if name in allowed and name in engines
    )


def sites_at_provider(tx: Transaction, engines: Engines, project: Project, order: Order) -> list[str]:
    """The sites of the order's provider that the project may use."""
    allowed = usable_sites(tx, engines, project)
    mine = {name: record.kind for name, record in engines.records.items() if name in allowed}
    names = sorted(name for name, kind in mine.items() if kind == order.provider and name in engines)
    if not names:
        near = suggestion(order.provider, set(mine.values()))
        raise UnknownName(
            f"This project has no account at `{order.provider}`",
            hint=f"{near} The operator shares accounts with projects: `tera account share`".strip(),
        )
    return names


def at_provider(order: Order, types: Mapping[str, Sequence[MachineType]]) -> Order:
    """The order with the site, and the machine type where it names only a GPU. `types` is by site."""
    names = list(types)
    found = [(each, name) for name in names if (each := cheapest(order, types[name])) is not None]
    if not found:
        return replace(order, site=names[0]) if order.type else _nothing_fits(order)
    machine, site = min(found, key=lambda pair: (pair[0].prices[order.mode], pair[1]))
    return replace(order, site=site, type=machine.name, shape=ShapeWish())


def choices_of(
    orders: Sequence[tuple[Order, Sequence[MachineType]]], engines: Engines
) -> list[tuple[Order, Sequence[MachineType], RentalChoice]]:
    """The orders that can be rented now, each with its choice. Raise the first problem if there is none."""
    found, problems = [], []
    for order, types in orders:
        driver = engines.at(order.site)
        try:
            choice = choice_of(order, *choose(order, types), driver)
        except (BadInput, Refused) as error:
            problems.append(error)
            continue
        if can_run(order, choice, driver):
            found.append((order, types, choice))
    if not found and problems:
        raise problems[0]
    return found


def own_first(order: Order, types: Sequence[MachineType]) -> Order | None:
    """The same order for own hosts: with the GPUs of the machine type. None: the type is unknown."""
    machine = next((each for each in types if each.name == order.type), None)
    if machine is None:
        return None
    shape = ShapeWish(gpu=machine.gpu, gpus=machine.gpus) if machine.gpus else ShapeWish(vcpus=machine.vcpus)
    return replace(
        order,
        site="",
        provider="",
        type="",
        region="",
        zone="",
        price_limit_micros_per_hour=None,
        burst=False,
        shape=shape,
    )


def _nothing_fits(order: Order) -> Order:
    gpus = order.shape.gpus or 1
    raise BadInput(
        f"`{order.provider}` has no machine with {gpus}× {order.shape.gpu or 'GPU'} free within these limits",
        hint="`tera site show NAME` lists machine types. Raise `--price-max`, or leave out `--region`",
    )
