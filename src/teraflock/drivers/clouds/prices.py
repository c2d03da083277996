"""What machines cost by their type, where a provider's answer does not say it. Pure."""

from collections.abc import Sequence

from msgspec.structs import replace

from teraflock.base.money import HOURS_PER_MONTH
from teraflock.catalog.costs import costs_of
from teraflock.drivers.rented import Remote
from teraflock.instance.driver import MachineType, Rental, Seen


def price_of(types: Sequence[MachineType], rental: Rental | None) -> int | None:
    """The price of what is to be rented; None: unknown."""
    for each in types if rental else ():
        if rental and (each.name, each.region) == (rental.type, rental.region):
            return each.prices.get(rental.mode)
    return None


def priced(types: Sequence[MachineType], remote: Remote) -> Remote:
    """A machine with the price of its type, where the listing has none."""
    if remote.seen == Seen.STOPPED:
        return replace(remote, price_micros_per_hour=0)  # its disk costs something, which no listing says
    if remote.price_micros_per_hour is not None or not remote.type:
        return remote
    mode = "spot" if remote.is_spot else "on-demand"
    there = (each for each in types if remote.zone.startswith(each.region))
    price = next((each.prices.get(mode) for each in there if each.name == remote.type), None)
    return replace(remote, price_micros_per_hour=price)


def disk_price(provider: str, size_gb: int) -> int | None:
    """What a disk costs per hour by the provider's list price; None: unknown."""
    known = costs_of(provider).disk
    return None if known is None else size_gb * known.micros // HOURS_PER_MONTH


def gpu_memory_of(types: Sequence[MachineType], rental: Rental | None) -> int:
    """Bytes of each GPU that the type promises; 0: unknown."""
    wanted = rental.type if rental else ""
    return next((each.gpu_memory_bytes for each in types if each.name == wanted), 0)
