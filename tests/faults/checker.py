"""Checks an idle installation by reading its tables and the simulated world, without calling its code.

`faults` returns a sentence for each problem: something left over, something missing, or something held twice.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import datetime

import msgspec

from teraflock.drivers.simulated.life import as_of
from teraflock.drivers.simulated.model import (
    AddressTaken,
    Guest,
    NetworkThere,
    SimulatedBalancer,
    SimulatedImage,
)
from teraflock.drivers.simulated.world import World
from teraflock.storage.database import Database, Row, Transaction

_BALANCED = "SELECT b.id, h.name FROM balancer b JOIN host h ON h.id = b.host_id"
AT_REST = {"running", "stopped", "failed", "gone"}


class Books(msgspec.Struct, kw_only=True):
    """The rows of the database."""

    instances: dict[str, Row]
    cards: dict[str, set[tuple[str, str]]]
    """By instance: host name and slot."""
    ports: dict[str, set[tuple[str, int, int]]]
    """By instance: host name, port of the host, port of the guest."""
    snapshots: dict[str, dict[str, str]]
    """By instance: the states of its snapshots."""
    kept: dict[str, int]
    """By instance: the snapshot bytes recorded in its row."""
    images: dict[str, str]
    hosts: dict[str, Row]
    remote_ids: dict[str, str]
    """By instance: the machine that is rented for it."""
    events: dict[str, list[int]]


def faults(database: Database, world: World, now: datetime, sky: World | None = None) -> list[str]:
    """`sky` is the world of a cloud, if there is one. Its machines have their own ids."""
    with database.read() as tx:
        books = _books(tx)
        balanced = {(row[0], row[1]) for row in tx.all(_BALANCED)}
    with world.read() as turn:
        every = [as_of(guest, now) for guest in turn.every(Guest)]
        balancers = {(each.spec.id, each.host) for each in turn.every(SimulatedBalancer) if each.running}
        guests = {str(guest.machine.id): guest for guest in every if guest is not None}
        copies = Counter(guest.machine.id for guest in every if guest is not None)
        addresses = {(taken.key, taken.instance_id) for taken in turn.every(AddressTaken)}
        images = {image.key for image in turn.every(SimulatedImage)}
        networks = turn.every(NetworkThere)
    wrong = [f"{id}: runs on {host}, but should not" for id, host in sorted(balancers - balanced)]
    wrong += [f"{id}: does not run on {host}" for id, host in sorted(balanced - balancers)]
    if sky is not None:
        with sky.read() as turn:  # contains images made from rented machines
            images |= {image.key for image in turn.every(SimulatedImage)}
    rented = _machines(sky, now) if sky else []
    counts = Counter(each.machine.handle.instance_id for each in rented)
    guests |= {each.machine.handle.instance_id: each for each in rented}
    found = [*wrong, *_of_instances(books, guests, now), *_of_hosts(books), *_of_images(books, images)]
    found += [f"{id}: on the engine, but in no row" for id in guests if id not in books.instances]
    held = {
        f"{guest.mark}/{nic.network.key}/{nic.address}"
        for guest in guests.values()
        for nic in guest.machine.nics
    }
    found += [f"{id}: is on {count} hosts" for id, count in copies.items() if count > 1]
    found += [f"{id}: has {count} rented machines" for id, count in counts.items() if count > 1]
    found += [
        f"{key}: an address in use by no instance"
        for key, id in addresses
        if key not in held or id not in guests
    ]
    found += [
        f"{there.key}: an incomplete network"
        for there in networks
        if not there.whole and _peopled(there, guests)
    ]
    return found


def _machines(sky: World, now: datetime) -> list[Guest]:
    with sky.read() as turn:
        every = (as_of(each, now) for each in turn.every(Guest))
        return [each for each in every if each is not None]


def charged_on_lost_hosts(database: Database) -> list[str]:
    """Check at any time, not only when idle: nothing runs, and is charged, on a host that is recorded as
    away."""
    with database.read() as tx:
        rows = tx.all(
            "SELECT i.id, i.phase, i.operation FROM instance i JOIN host h ON h.id = i.host_id"
            " WHERE h.state = 'away' AND i.phase IN ('running', 'changing') ORDER BY i.id"
        )
    return [f"{id} ({phase}, {operation or 'idle'}): its host is away" for id, phase, operation in rows]


def _books(tx: Transaction) -> Books:
    names = {row[0]: row[1] for row in tx.all("SELECT id, name FROM host")}
    cards: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for host, slot, id in tx.all(
        "SELECT host_id, slot, instance_id FROM host_gpu WHERE instance_id IS NOT NULL"
    ):
        cards[id].add((names[host], slot))
    ports: dict[str, set[tuple[str, int, int]]] = defaultdict(set)
    for host, port, guest_port, id in tx.all("SELECT host_id, port, guest_port, instance_id FROM host_port"):
        ports[id].add((names[host], port, guest_port))
    snapshots: dict[str, dict[str, str]] = defaultdict(dict)
    for id, instance, state in tx.all("SELECT id, instance_id, state FROM snapshot"):
        snapshots[instance][id] = state
    events: dict[str, list[int]] = defaultdict(list)
    for subject, details in tx.all(
        "SELECT subject, details FROM event WHERE kind LIKE 'instance.%' ORDER BY id"
    ):
        number = msgspec.json.decode(details).get("sequence")
        if number is not None:
            events[subject].append(number)
    rows = tx.all(
        "SELECT i.id, i.wanted, i.phase, i.gpu, i.gpus, i.vcpus, i.ram_bytes, i.disk_bytes, i.held_vcpus,"
        " i.held_ram_bytes, i.held_disk_bytes, h.name, i.address, i.operation, i.request, i.lease_owner, i.settled,"
        " i.sequence, i.problem, h.state FROM instance i LEFT JOIN host h ON h.id = i.host_id"
    )
    return Books(
        instances={row[0]: row for row in rows},
        cards=cards,
        ports=ports,
        snapshots=snapshots,
        kept={row[0]: row[1] for row in tx.all("SELECT id, held_snapshots_bytes FROM instance")},
        images={row[0]: row[1] for row in tx.all("SELECT id, state FROM image")},
        hosts={row[0]: row for row in tx.all("SELECT name, ram_bytes, state FROM host")},
        remote_ids=dict(
            tx.all("SELECT name, remote_id FROM host WHERE kind = 'rented' AND gone_at_us IS NULL")
        ),
        events=events,
    )


def _of_instances(books: Books, guests: dict[str, Guest], now: datetime) -> Iterator[str]:
    for id, row in books.instances.items():
        for wrong in _of_instance(books, row, guests.get(id), now):
            yield f"{id} ({row[2]}, wanted {row[1]}): {wrong}"
    for id in {*books.cards, *books.ports}:
        if id not in books.instances:
            yield f"{id}: holds cards or ports, but is in no row"


def _of_instance(books: Books, row: Row, guest: Guest | None, now: datetime) -> Iterator[str]:
    id, wanted, phase = row[0], row[1], row[2]
    operation, request, lease, settled, sequence = row[13:18]
    if phase not in AT_REST:
        yield "not idle"
    if operation or lease or not settled:
        yield f"still has an operation: {operation!r}, {lease!r}"
    if wanted != phase and phase != "failed":
        yield "not what is wanted"
    if sorted(books.events[id]) != list(range(1, sequence + 1)):
        yield f"has the events {books.events[id]}, but its row counts {sequence}"
    if phase in ("gone", "failed"):
        yield from _of_nothing(books, row, guest)
    elif phase == "stopped":
        yield from _of_stopped(books, row, guest, lost=bool(request))
    elif phase == "running":
        yield from _of_running(books, row, guest, now)
    if guest is not None and phase in ("stopped", "running"):
        ready = {name for name, state in books.snapshots[id].items() if state == "ready"}
        if set(guest.snapshots) != ready:
            yield f"its snapshots are {sorted(guest.snapshots)} on the engine but {books.snapshots[id]} in the rows"
        kept_bytes = sum(disk.own_bytes for disk in guest.snapshots.values())
        if books.kept[id] != kept_bytes:
            yield f"its snapshots keep {kept_bytes} bytes, but its row has {books.kept[id]}"


def _of_nothing(books: Books, row: Row, guest: Guest | None) -> Iterator[str]:
    if guest is not None:
        yield "still on the engine"
    if books.cards[row[0]] or books.ports[row[0]]:
        yield f"still holds {books.cards[row[0]]} {books.ports[row[0]]}"
    if any(row[8:11]) or row[11] or row[12]:
        yield f"still holds {row[8:13]}"
    if books.snapshots[row[0]] or books.kept[row[0]]:
        yield "still has snapshots"
    if row[2] == "failed" and not row[18]:
        yield "failed without a reason"


def _of_stopped(books: Books, row: Row, guest: Guest | None, *, lost: bool) -> Iterator[str]:
    if guest is None and not lost:
        yield "its disk is not on the engine"
    if guest is not None and (guest.running or not guest.whole):
        yield "is running or incomplete"
    if guest is not None and guest.ports:
        yield f"its ports are open: {guest.ports}"
    if books.cards[row[0]] or row[8] or row[9]:
        yield f"holds cards, processors or memory: {books.cards[row[0]]} {row[8:10]}"
    if row[10] != row[7]:
        yield f"holds {row[10]} of disk instead of {row[7]}"


def _of_running(books: Books, row: Row, guest: Guest | None, now: datetime) -> Iterator[str]:
    if guest is None or not guest.running or not guest.whole:
        yield "does not run on the engine"
        return
    machine = guest.machine
    if guest.up_at is None or guest.up_at > now:
        yield "does not answer"
    if (machine.vcpus, machine.ram_bytes, machine.disk_bytes) != row[5:8]:
        yield f"has the limits {(machine.vcpus, machine.ram_bytes, machine.disk_bytes)} instead of {row[5:8]}"
    if row[8:11] != row[5:8]:
        yield f"holds {row[8:11]} instead of {row[5:8]}"
    if guest.remote_id:
        yield from _of_rented(books, row, guest)
        return
    if {(guest.host, gpu.slot) for gpu in machine.gpus} != books.cards[row[0]] or len(machine.gpus) != row[4]:
        yield f"has the cards {machine.gpus} and holds {books.cards[row[0]]}, but should have {row[4]}"
    if {(guest.host, port.host_port, port.guest_port) for port in guest.ports} != books.ports[row[0]]:
        yield f"its open ports are {guest.ports}, but it holds {books.ports[row[0]]}"
    if (guest.host, machine.address) != (row[11], row[12]):
        yield f"is at {(guest.host, machine.address)} instead of {row[11:13]}"


def _of_rented(books: Books, row: Row, guest: Guest) -> Iterator[str]:
    """Check a rented machine: the cloud owns cards and addresses, so only the number of cards and the
    machine's id count."""
    if len(books.cards[row[0]]) != row[4]:
        yield f"holds {books.cards[row[0]]}, but should have {row[4]}"
    if guest.remote_id != books.remote_ids.get(row[0]):
        yield f"its machine is {guest.remote_id}, but {books.remote_ids.get(row[0])} is recorded"


def _of_hosts(books: Books) -> Iterator[str]:
    taken = Counter(card for cards in books.cards.values() for card in cards)
    yield from (f"{card}: a card of {count} instances" for card, count in taken.items() if count > 1)
    for name, row in books.hosts.items():
        held = sum(each[9] for each in books.instances.values() if each[11] == name)
        if held > row[1]:
            yield f"{name}: {held} of memory reserved, but only {row[1]} available"


def _of_images(books: Books, held: set[str]) -> Iterator[str]:
    ready = {id for id, state in books.images.items() if state == "ready"}
    yield from (f"{id}: an image in no row" for id in held - books.images.keys())
    yield from (
        f"{id}: a failed image that is still on the engine" for id in held & books.images.keys() - ready
    )
    yield from (f"{id}: a ready image that is not on the engine" for id in ready - held)


def _peopled(there: NetworkThere, guests: dict[str, Guest]) -> bool:
    return any(
        guest.host == there.host and there.network.key in {nic.network.key for nic in guest.machine.nics}
        for guest in guests.values()
    )
