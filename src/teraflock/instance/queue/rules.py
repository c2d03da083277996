"""Decides which queued launches start, and which hosts are kept free for the next one. Pure.

Order: the project that used least comes first (fair share); within a project, the highest priority, then the oldest.
Priority does not count between projects, because everyone would set the highest.

The first launch that does not fit gets a reservation: the hosts where it will fit soonest. Other launches do not use
these hosts, so a large launch is not overtaken forever. Launches behind it start if they fit elsewhere, or if their
time limit ends before the reserved hosts are expected to be free (backfill).
"""

import heapq
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Final

from msgspec.structs import replace

from teraflock.base.size import Size
from teraflock.fleet.placement import PlaceDecision, PlaceTerms, decide, obstacle_of
from teraflock.fleet.room import Room
from teraflock.instance.queue.model import (
    QueuedLaunch,
    QueuePlace,
    QueueTurn,
    Release,
    Start,
    Used,
    Waiting,
)

VCPUS_PER_GPU: Final = 12
"""An instance without GPUs counts like one GPU for this many vCPUs."""
SLICE: Final = timedelta(minutes=10)
"""A launch that starts counts as if it had run for this long, so that no project gets all free room at once."""
CONSIDERED_MAX: Final = 100
"""How many launches one turn looks at. Those behind them move up as these start."""
RESERVED_SHARE: Final = 4
"""At most one in this many hosts is reserved, but at least one. A reservation costs nothing, so it must not block
more."""
RELEASES_MAX: Final = 2_000
BOOT: Final = timedelta(minutes=1)
"""A backfilled launch must end this long before the reserved hosts are expected to be free."""


def weight(need: Size) -> float:
    return need.gpus or need.vcpus / VCPUS_PER_GPU


def in_order(waiting: Iterable[Waiting], used: Used) -> list[Waiting]:
    by_project: dict[str, list[Waiting]] = defaultdict(list)
    for each in waiting:
        by_project[each.queued.project_id].append(each)
    heap = []
    for project, mine in by_project.items():
        mine.sort(
            key=lambda each: (-each.queued.priority, each.queued.created_at, each.queued.id), reverse=True
        )
        heap.append((used.get(project, 0.0), mine[-1].queued.created_at, project))
    heapq.heapify(heap)
    ordered: list[Waiting] = []
    while heap:
        share, _, project = heapq.heappop(heap)
        mine = by_project[project]
        first = mine.pop()
        ordered.append(first)
        if mine:
            share += weight(first.queued.need) * first.queued.instances * SLICE.total_seconds()
            heapq.heappush(heap, (share, mine[-1].queued.created_at, project))
    return ordered


def plan_turn(
    ordered: Sequence[Waiting],
    rooms: Sequence[Room],
    empty: Sequence[Room],
    releases: Sequence[Release],
    now: datetime,
    kept: Mapping[str, str] = MappingProxyType({}),
) -> QueueTurn:
    """`rooms` have what is free now, `empty` what the same hosts have without instances; none is reserved. `kept` has
    the hosts that were reserved until now. Changes the rooms."""
    starts: list[Start] = []
    head, hosts, free_at = "", frozenset[str](), None
    refused: set[tuple[object, ...]] = set()
    for each in ordered[:CONSIDERED_MAX]:
        queued = each.queued
        whose = head if head and _ends_before(queued, free_at, now) else queued.id
        what = (queued.need, queued.instances, str(each.terms), whose == head)
        if what in refused:  # rooms only shrink
            continue
        if decide(rooms, queued.need, queued.instances, replace(each.terms, queued_id=whose)).chosen:
            starts.append(Start(queued.id, whose))
            continue
        refused.add(what)
        if not head:
            hosts, free_at = reservation(each, rooms, empty, releases, kept)
            if hosts:
                head = queued.id
                starts = [
                    Start(start.id, head) for start in starts
                ]  # they come before it: its hosts are open to them
                for room in rooms:
                    room.reserved_for = head if room.host_id in hosts else ""
    return QueueTurn(starts=tuple(starts), reserved_for=head, reserved=tuple(sorted(hosts)))


def reservation(
    waiting: Waiting,
    rooms: Sequence[Room],
    empty: Sequence[Room],
    releases: Sequence[Release],
    kept: Mapping[str, str],
) -> tuple[frozenset[str], datetime | None]:
    """The hosts to keep free for a launch, and when it is expected to fit there. No hosts: it would need too many."""
    found, at = _first_fit(waiting, rooms, releases)
    if found is None:
        found = _soonest(waiting, rooms, empty, kept)
    hosts = frozenset(room.host_id for room in found.chosen)
    if len(hosts) > max(1, len(rooms) // RESERVED_SHARE):
        return frozenset(), None
    return hosts, at


def _first_fit(
    waiting: Waiting, rooms: Sequence[Room], releases: Sequence[Release]
) -> tuple[PlaceDecision | None, datetime | None]:
    """The placement when enough time limits have ended, and that time."""
    later = {str(room.host_id): _copy(room) for room in rooms}
    return _next_fit(waiting, later, _ends(releases))


def _next_fit(
    waiting: Waiting, later: Mapping[str, Room], ends: list[tuple[datetime, int, Release]]
) -> tuple[PlaceDecision | None, datetime | None]:
    """Let time limits end until a launch fits, and place it. No time: it fits without any of them."""
    queued, terms, at = waiting.queued, waiting.terms, None
    room_for = {id: _most(room, queued, terms) for id, room in later.items()}
    total = sum(room_for.values())
    while True:
        if total >= queued.instances:
            decision = decide(later.values(), queued.need, queued.instances, terms)
            if decision.chosen:
                return decision, at
        if not ends:
            return None, None
        at, _, release = heapq.heappop(ends)
        if room := later.get(release.host_id):
            room.give_back(release.held)
            more = _most(room, queued, terms)
            total += more - room_for[release.host_id]
            room_for[release.host_id] = more


def _most(room: Room, queued: QueuedLaunch, terms: PlaceTerms) -> int:
    """How many instances of a launch one host can take."""
    if obstacle_of(room, queued.need, terms):
        return 0
    return 1 if terms.apart else room.capacity(queued.need)


def _ends(releases: Sequence[Release]) -> list[tuple[datetime, int, Release]]:
    return [(release.at, n, release) for n, release in enumerate(releases[:RELEASES_MAX])]


def _soonest(
    waiting: Waiting, rooms: Sequence[Room], empty: Sequence[Room], kept: Mapping[str, str]
) -> PlaceDecision:
    """A placement on hosts that have most of the room already. It is unknown when the rest becomes free."""
    queued, free = waiting.queued, {room.host_id: room for room in rooms}
    ready = [room for room in empty if room.host_id in free]
    ready.sort(key=lambda room: _free_first(free[room.host_id], queued, kept))
    count = max(1, queued.instances)
    while True:
        decision = decide(
            [_copy(room) for room in ready[:count]], queued.need, queued.instances, waiting.terms
        )
        if decision.chosen or count >= len(ready):
            return decision
        count *= 2


def _free_first(room: Room, queued: QueuedLaunch, kept: Mapping[str, str]) -> tuple[int, int, int, str]:
    is_kept = kept.get(room.host_id) == queued.id
    return (not is_kept, -room.free_gpus.get(queued.need.gpu, 0), -room.ram_bytes, room.host_id)


def places(
    ordered: Sequence[Waiting], rooms: Sequence[Room], releases: Sequence[Release], now: datetime
) -> Mapping[str, QueuePlace]:
    """The place of each launch, and when it starts if none of them is overtaken and every time limit is used up.

    An expected time is an upper limit, as far as running instances have time limits. Without them it is unknown.
    """
    later = {str(room.host_id): _copy(room) for room in rooms}
    ends = _ends(releases)
    expected: dict[str, datetime] = {}
    at, number = now, len(ends)
    for each in ordered[:CONSIDERED_MAX]:
        queued = each.queued
        decision, ended_at = _next_fit(each, later, ends)
        if decision is None:
            break
        at = max(at, ended_at or at)
        expected[queued.id] = at
        if limit := queued.launch.time_limit_seconds if queued.launch else None:
            over = at + timedelta(seconds=limit)
            for room in decision.chosen:
                number += 1
                heapq.heappush(ends, (over, number, Release(over, room.host_id, queued.need)))
    return {
        each.queued.id: QueuePlace(place=n, of=len(ordered), expected_at=expected.get(each.queued.id))
        for n, each in enumerate(ordered, start=1)
    }


def _ends_before(queued: QueuedLaunch, free_at: datetime | None, now: datetime) -> bool:
    limit = queued.launch.time_limit_seconds if queued.launch else None
    if free_at is None or limit is None:
        return False
    return now + timedelta(seconds=limit) + BOOT <= free_at


def _copy(room: Room) -> Room:
    return replace(room, free_gpus=dict(room.free_gpus))
