"""The places where the machine of an instance may be rented, in order: each region of each choice. Pure.

The list is stored with the instance at its launch. `Instance.candidate` counts the places that were tried, and selects
one in turn. Site, size, mode and rental of the instance are always those of the selected place.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from teraflock.base.filling import filled
from teraflock.base.size import Size
from teraflock.instance.driver import Capability, ComputeDriver, MachineType
from teraflock.instance.model import Access, Instance, RentalChoice, RentalSpec
from teraflock.instance.orders import Order


def choice_of(order: Order, size: Size, rental: RentalSpec, driver: ComputeDriver) -> RentalChoice:
    """What an order rents, as one of several choices."""
    can = driver.capabilities
    return filled(
        RentalChoice,
        rental,
        site=driver.site,
        mode=order.mode,
        size=size,
        keeps_disk=Capability.STOP in can and (order.mode == "on-demand" or Capability.STOP_SPOT in can),
        watches_guest=Capability.EXEC in can,
        offer=order.offer,
    )


def can_run(order: Order, choice: RentalChoice, driver: ComputeDriver) -> bool:
    """Whether a site can do what the order needs besides the machine itself."""
    lacks_command = order.access == Access.COMMAND and not choice.watches_guest
    return not lacks_command and (order.access != Access.JUPYTER or Capability.JUPYTER in driver.capabilities)


def places(rental: RentalSpec) -> tuple[tuple[int, str], ...]:
    """Each place as the number of its choice and its region."""
    if not rental.choices:
        return tuple((0, region) for region in rental.regions)
    return tuple((number, region) for number, each in enumerate(rental.choices) for region in each.regions)


def region_of(instance: Instance) -> str:
    """The region in which an instance is rented, or will be."""
    rental = instance.spec.rental
    if rental is None:
        return ""
    found = places(rental)
    return found[instance.candidate % len(found)][1]


def at_candidate(instance: Instance, candidate: int) -> Instance:
    """The instance with another place selected."""
    rental = instance.spec.rental
    assert rental is not None, "only a rented instance has candidates"
    chosen = replace(instance, candidate=candidate)
    if not rental.choices:
        return chosen
    found = places(rental)
    return _at(chosen, rental, rental.choices[found[candidate % len(found)][0]])


def _at(instance: Instance, rental: RentalSpec, choice: RentalChoice) -> Instance:
    there = replace(
        rental,
        type=choice.type,
        regions=choice.regions,
        zone=choice.zone,
        bid_micros_per_hour=choice.bid_micros_per_hour,
        price_limit_micros_per_hour=choice.price_limit_micros_per_hour,
        currency=choice.currency,
    )
    if there == rental and (choice.site, choice.mode) == (instance.site, instance.spec.mode):
        return instance
    spec = replace(
        instance.spec,
        rental=there,
        mode=choice.mode,
        keeps_disk=choice.keeps_disk,
        watches_guest=choice.watches_guest,
    )
    return replace(instance, site=choice.site, shape=choice.size, spec=spec)


def is_same_machine(one: Instance, other: Instance) -> bool:
    """Whether two states of an instance rent the same type at the same site."""
    first, second = one.spec.rental, other.spec.rental
    return (one.site, first and first.type, one.shape) == (other.site, second and second.type, other.shape)


def type_of(instance: Instance, types: Sequence[MachineType]) -> MachineType | None:
    """The machine type at the selected place, among those of its site."""
    rental, region = instance.spec.rental, region_of(instance)
    if rental is None:
        return None
    return next((each for each in types if (each.name, each.region) == (rental.type, region)), None)
