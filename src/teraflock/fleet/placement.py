"""Chooses hosts for instances from their free room, and says why. It knows no database.

An instance goes where it strands the fewest free cards, that is, where enough memory stays beside them. Among equal
hosts, an instance without cards goes to a host without cards, and then the tightest fit wins, so that large requests
find whole hosts. `PlaceTerms` narrow and change this. `decide` returns the choice with its reasons: `--explain` prints
what a launch does, because both call it.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from heapq import heapify, heappop, heappush
from typing import Final

import msgspec

from teraflock.base.quantities import GIB, count_text
from teraflock.base.size import Size
from teraflock.fleet.model import HostId, HostState
from teraflock.fleet.room import Obstacle, Room

RAM_BYTES_OF_HOST = GIB  # kept back on every host for its own system and the engine
ZONE: Final = "zone"
REGION: Final = "region"
_CIRCLES: Final[tuple[tuple[Callable[[Room], tuple[str, ...]], str], ...]] = (
    (lambda room: (room.host_id,), "all on one host"),
    (
        lambda room: (room.region, room.labels.get(ZONE, "")),
        "all in the zone `{name}`, on {hosts}: no host has room for all",
    ),
    (lambda room: (room.region,), "all in the region `{name}`, on {hosts}: no zone has room for all"),
    (lambda room: (), "on {hosts}: no region has room for all"),
)
_REASONS: Final = (
    "leaves more free cards usable than `{other}`, the next best",
    "has fewer cards than `{other}`, the next best, and the instance needs none",
    "has fewer free cards than `{other}`, the next best: larger requests need whole hosts",
    "has less free memory than `{other}`, the next best: it fits tighter",
    "as good as `{other}`, and first by id",
)


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """How far a host's parts are promised more than once. Cards and memory never are."""

    vcpu_overcommit: float = 16.0
    """Virtual processors per real one; most wait for disks, cards and people."""
    disk_overcommit: float = 4.0
    """Disks are thin: they take room as they are filled. A full pool raises an alarm."""


class Spread(StrEnum):
    HOST = "host"
    ZONE = "zone"
    REGION = "region"


class PlaceTerms(msgspec.Struct, frozen=True, kw_only=True):
    """Where instances may run and how they are arranged. The default: anywhere, tightest fit."""

    host_id: HostId | None = None
    """Only this host."""
    site: str = ""
    labels: tuple[tuple[str, str], ...] = ()
    """Labels that a host must have, all of them."""
    avoid: Mapping[str, str] = {}
    """Hosts that must not be used, by id, with the reason."""
    apart: bool = False
    """At most one of the instances on each host."""
    spread: Spread | None = None
    """As evenly as possible over hosts, zones or regions."""
    pack: bool = False
    """On as few hosts as possible."""
    together: bool = False
    """On one host, else in one zone, else in one region, else anywhere; each time on as few hosts as possible."""
    queued_id: str = ""
    """Also use the hosts that are reserved for this queued launch."""

    @property
    def is_plain(self) -> bool:
        return self == _PLAIN


_PLAIN: Final = PlaceTerms()


class RejectedHost(msgspec.Struct, frozen=True):
    room: Room
    obstacle: Obstacle


class PlaceDecision(msgspec.Struct, frozen=True, kw_only=True):
    chosen: tuple[Room, ...] = ()
    """The host of each instance. Empty: there is no room for all of them."""
    why: str = ""
    rejected: tuple[RejectedHost, ...] = ()
    others: tuple[Room, ...] = ()
    """Hosts with room that were not chosen, best first."""


def decide(rooms: Iterable[Room], need: Size, count: int, terms: PlaceTerms = _PLAIN) -> PlaceDecision:
    """Choose a host for each of `count` equal instances, all or none. Takes them from the rooms."""
    rejected: list[RejectedHost] = []
    fitting: list[Room] = []
    for room in rooms:
        obstacle = obstacle_of(room, need, terms)
        if obstacle:
            rejected.append(RejectedHost(room, obstacle))
        else:
            fitting.append(room)
    ranked = sorted(fitting, key=lambda room: room.tightness(need))
    chosen, why = _arranged(ranked, need, count, terms)
    used = {room.host_id for room in chosen}
    return PlaceDecision(
        chosen=tuple(chosen),
        why=why if chosen else "",
        rejected=tuple(rejected),
        others=tuple(room for room in ranked if room.host_id not in used),
    )


def obstacle_of(room: Room, need: Size, terms: PlaceTerms) -> Obstacle | None:
    """Why a host cannot take one of the instances. None: it can."""
    if terms.host_id is not None and room.host_id != terms.host_id:
        return Obstacle("not the host you chose")
    if terms.site and room.site != terms.site:
        return Obstacle(f"not at the site `{terms.site}`")
    if room.state != HostState.READY:
        return Obstacle("drained" if room.state == HostState.DRAINING else "does not answer")
    for key, value in terms.labels:
        if label_of(room, key) != value:
            return Obstacle(f"not labelled `{key}={value}`")
    if room.host_id in terms.avoid:
        return Obstacle(terms.avoid[room.host_id])
    if lack := room.lacks(need):
        return lack
    if room.reserved_for and room.reserved_for != terms.queued_id:
        return Obstacle("reserved for a queued launch", room.reserved_for)
    return None


def label_of(room: Room, key: str) -> str | None:
    """The value of a label. `region` is the region of the host, which prices depend on."""
    return room.region if key == REGION else room.labels.get(key)


def choose(rooms: Iterable[Room], need: Size) -> Room | None:
    """The host that fits tightest. Takes nothing from it."""
    return min(
        (room for room in rooms if room.fits(need)), key=lambda room: room.tightness(need), default=None
    )


def choose_many(rooms: Sequence[Room], need: Size, count: int) -> list[Room] | None:
    """A host for each of `count` equal instances, as if `choose` chose them one after another, or None if not all fit.
    If all fit, takes them from the rooms."""
    chosen: list[Room] = []
    fitting = [(room.tightness(need), room) for room in rooms if room.fits(need)]
    heapify(fitting)
    while fitting and len(chosen) < count:
        _, room = heappop(fitting)
        room.take(need)
        chosen.append(room)
        if room.fits(need):
            heappush(fitting, (room.tightness(need), room))
    if len(chosen) == count:
        return chosen
    for room in chosen:
        room.give_back(need)
    return None


def _arranged(fitting: Sequence[Room], need: Size, count: int, terms: PlaceTerms) -> tuple[list[Room], str]:
    """The host of each instance, and why. Empty: not all of them fit."""
    why = _why_first(fitting, need)
    if terms.together:
        return _close(fitting, need, count, _most(need, terms))
    if terms.spread:
        return _even(fitting, need, count, terms)
    if terms.pack:
        chosen = _fewest_hosts(fitting, need, count, _most(need, terms))
        return chosen, f"packed on {count_text(len(_ids(chosen)), 'host')}"
    if terms.apart:
        return _taken(fitting[:count], need) if len(fitting) >= count else [], why
    return choose_many(fitting, need, count) or [], why


def _most(need: Size, terms: PlaceTerms) -> Callable[[Room], int]:
    """How many of the instances one host may have."""
    return lambda room: min(1, room.capacity(need)) if terms.apart else room.capacity(need)


def _close(
    fitting: Sequence[Room], need: Size, count: int, most: Callable[[Room], int]
) -> tuple[list[Room], str]:
    """Instances in the smallest circle that has room for all of them: a host, a zone, a region, everything."""
    for circle, words in _CIRCLES:
        groups: dict[tuple[str, ...], list[Room]] = defaultdict(list)
        for room in fitting:
            groups[circle(room)].append(room)
        sizes = {key: sum(map(most, group)) for key, group in groups.items()}
        enough = [key for key, size in sizes.items() if size >= count]
        if enough:
            best = min(enough, key=lambda key: (sizes[key], groups[key][0].tightness(need)))
            chosen = _fewest_hosts(groups[best], need, count, most)
            hosts = count_text(len(_ids(chosen)), "host")
            return chosen, words.format(name=best[-1] if best else "", hosts=hosts)
    return [], ""


def _fewest_hosts(fitting: Sequence[Room], need: Size, count: int, most: Callable[[Room], int]) -> list[Room]:
    """The hosts with the most room first; the rest goes to the smallest host that has room for it."""
    sizes = sorted(
        ((most(room), place, room) for place, room in enumerate(fitting)), key=lambda each: each[:2]
    )
    if sum(size for size, _, _ in sizes) < count:
        return []
    chosen: list[Room] = []
    while len(chosen) < count:
        left = count - len(chosen)
        place = bisect_left(sizes, left, key=lambda each: each[0])
        size, _, room = sizes.pop(min(place, len(sizes) - 1))
        chosen += [room] * min(size, left)
    return _taken(chosen, need)


def _even(fitting: Sequence[Room], need: Size, count: int, terms: PlaceTerms) -> tuple[list[Room], str]:
    """Each instance goes to the domain that has the fewest of them so far."""
    assert terms.spread is not None, "the caller checked it"
    domains: dict[tuple[str, ...], list[tuple[tuple[object, ...], Room]]] = defaultdict(list)
    for room in fitting:
        domains[_DOMAINS[terms.spread](room)].append((room.tightness(need), room))
    heap = [
        (0, rooms[0][0], domain) for domain, rooms in domains.items()
    ]  # `fitting` is sorted: so are these
    heapify(heap)
    chosen: list[Room] = []
    while heap and len(chosen) < count:
        placed, _, domain = heappop(heap)
        _, room = heappop(domains[domain])
        room.take(need)
        chosen.append(room)
        if room.fits(need) and not terms.apart:
            heappush(domains[domain], (room.tightness(need), room))
        if domains[domain]:
            heappush(heap, (placed + 1, domains[domain][0][0], domain))
    if len(chosen) < count:
        for room in chosen:
            room.give_back(need)
        return [], ""
    used = {_DOMAINS[terms.spread](room) for room in chosen}
    return chosen, f"spread over {count_text(len(used), terms.spread)}"


_DOMAINS: Final[Mapping[Spread, Callable[[Room], tuple[str, ...]]]] = {
    Spread.HOST: lambda room: (room.host_id,),
    Spread.ZONE: lambda room: (room.region, room.labels.get(ZONE, "")),
    Spread.REGION: lambda room: (room.region,),
}


def _taken(chosen: Sequence[Room], need: Size) -> list[Room]:
    for room in chosen:
        room.take(need)
    return list(chosen)


def _ids(rooms: Iterable[Room]) -> set[str]:
    return {room.host_id for room in rooms}


def _why_first(fitting: Sequence[Room], need: Size) -> str:
    """Why the first host is better than the second: the first difference in `tightness`."""
    best = fitting[:2]
    if len(best) < 2:
        return "the only host with room" if best else ""
    scores = [room.tightness(need) for room in best]
    place = next(place for place in range(len(_REASONS)) if scores[0][place] != scores[1][place])
    return _REASONS[place].format(other=best[1].name)
