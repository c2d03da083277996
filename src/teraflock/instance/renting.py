"""Chooses the machine that an order rents from the types of a site. Pure."""

from collections.abc import Sequence

import msgspec

from teraflock.base.errors import BadInput, Refused, unknown_name
from teraflock.base.size import Size
from teraflock.catalog.names import find_cards
from teraflock.instance.driver import MachineType
from teraflock.instance.model import RentalSpec
from teraflock.instance.orders import Order


def choose(order: Order, types: Sequence[MachineType]) -> tuple[Size, RentalSpec]:
    """Return the size of the machine type, and the regions that have it at an acceptable price, cheapest first."""
    fitting = _affordable(order, _available(order, types))
    first = fitting[0]
    rental = RentalSpec(
        type=order.type,
        regions=tuple(each.region for each in fitting),
        zone=order.zone,
        bid_micros_per_hour=order.bid_micros_per_hour,
        price_limit_micros_per_hour=order.price_limit_micros_per_hour,
        currency=first.currency,
    )
    return _size(first), rental


def _available(order: Order, types: Sequence[MachineType]) -> list[MachineType]:
    """The ordered type in the regions and the purchase mode that the order allows."""
    if not order.type:
        names = ", ".join(f"`{name}`" for name in sorted({each.name for each in types})[:8])
        raise BadInput(f"The site `{order.site}` rents machines by type", hint=f"`--type` is one of: {names}")
    named = [each for each in types if each.name == order.type]
    if not named:
        raise unknown_name("machine type", order.type, {each.name for each in types})
    there = [each for each in named if order.region in ("", each.region)]
    if not there:
        raise unknown_name("region with this type", order.region, {each.region for each in named})
    in_mode = [each for each in there if order.mode in each.prices]
    if not in_mode:
        modes = ", ".join(sorted({mode for each in there for mode in each.prices}))
        raise BadInput(
            f"`{order.type}` is not available in mode `{order.mode}`", hint=f"Available modes: {modes}"
        )
    return in_mode


def cheapest(order: Order, types: Sequence[MachineType]) -> MachineType | None:
    """The cheapest machine of the named type, or with the GPUs of the order, within its region, mode and limit."""
    gpus = {each.id for each in find_cards(order.shape.gpu)} if order.shape.gpu and not order.type else set()
    limit = order.price_limit_micros_per_hour
    fitting = [
        each
        for each in types
        if (
            each.name == order.type
            if order.type
            else each.gpu in gpus and each.gpus == (order.shape.gpus or 1)
        )
        and order.region in ("", each.region)
        and order.mode in each.prices
        and (limit is None or each.prices[order.mode] <= limit)
    ]
    return min(fitting, key=lambda each: (each.prices[order.mode], each.name, each.region), default=None)


def _affordable(order: Order, types: Sequence[MachineType]) -> list[MachineType]:
    """The types within the price limit, cheapest first. All have the size and currency of the first one."""
    in_order = sorted(types, key=lambda each: (each.prices[order.mode], each.region))
    limit = order.price_limit_micros_per_hour
    found = [each for each in in_order if limit is None or each.prices[order.mode] <= limit]
    if not found:
        price = in_order[0].prices[order.mode] / 10**6
        raise Refused(
            f"`{order.type}` costs {price:.6g} {in_order[0].currency} per hour, more than your limit",
            hint="Raise `--price-max`, or choose another type",
        )
    return [each for each in found if _size(each) == _size(found[0]) and each.currency == found[0].currency]


def _size(each: MachineType) -> Size:
    return msgspec.convert(each, Size, from_attributes=True)
