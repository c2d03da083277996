"""Claims parts of hosts for instances, in the transaction of the request.

A claim succeeds completely or raises. Two instances never hold the same card, because a card's row names one instance.
A claim locks the host first, and then checks that there is room.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from teraflock.base.errors import BadInput, Conflict
from teraflock.base.quantities import GIB, bytes_text, count_text
from teraflock.base.size import Size
from teraflock.fleet import store as fleet
from teraflock.fleet.card import store as cards
from teraflock.fleet.memory import FleetMemory
from teraflock.fleet.model import HOSTS_MAX, GpuKind, Host, HostId, HostState
from teraflock.fleet.placement import PlaceTerms, Policy, decide, obstacle_of
from teraflock.fleet.port import store as ports
from teraflock.fleet.room import Room
from teraflock.fleet.shapes import count_free, named_shapes
from teraflock.instance import store
from teraflock.instance.model import Held, HeldGpu, HeldPort, Instance, InstanceId
from teraflock.instance.orders import shape_text
from teraflock.network.rules import free_ports
from teraflock.storage.database import Overtaken, Transaction
from teraflock.tenant.model import Project, Quota
from teraflock.tenant.quota import rules as quotas
from teraflock.tenant.quota.rules import QuotaAmounts
from teraflock.tenant.quota.store import name_and_quota


class NoCapacity(Conflict):
    """A host is large enough for the instance, but what it needs is in use now."""

    code = "no_capacity"
    remedy = "Choose a size that is free (`GET /v1/shapes`), or try again later."


def check_quota(
    tx: Transaction,
    project: Project,
    shape: Size,
    count: int,
    *,
    instead_of: Size | None = None,
    ever: bool = False,
) -> None:
    """Refuse what would exceed the quota of the project or its organisation, with the quota and the amount.

    `ever`: refuse only what would exceed it even if nothing else was in use.
    """
    before = instead_of or Size()
    kept = before.gpus if before.gpu == shape.gpu else 0
    more = QuotaAmounts(
        instances=0 if instead_of else count,
        vcpus=count * shape.vcpus - before.vcpus,
        ram_bytes=count * shape.ram_bytes - before.ram_bytes,
        disk_bytes=count * shape.disk_bytes - before.disk_bytes,
        gpus={shape.gpu: count * shape.gpus - kept} if shape.gpus else {},
    )
    instead = "Delete or shrink something"
    for quota, used, of, hint in _both(tx, project, instead):
        quotas.check(quota, QuotaAmounts() if ever else used, more, of=of, hint=hint)


def check_quota_of_several(
    tx: Transaction, project: Project, own: Sequence[tuple[Size, int]], whole: Sequence[tuple[Size, int]]
) -> None:
    """Refuse launches that exceed a quota together: those of the project, and of all projects of its organisation.
    Each launch is a size and a number of instances."""
    hint = "See `tera quota show`"
    quotas.check(
        project.quota, store.usage(tx, project.id), _amounts(own), of=f"project `{project.name}`", hint=hint
    )
    name, wall = name_and_quota(tx, project.organisation_id)
    used = store.usage_of_organisation(tx, project.organisation_id)
    quotas.check(wall, used, _amounts(whole), of=f"organisation `{name}`", hint=hint)


def _amounts(launches: Sequence[tuple[Size, int]]) -> QuotaAmounts:
    gpus = Counter[str]()
    for size, count in launches:
        gpus[size.gpu] += count * size.gpus
    return QuotaAmounts(
        instances=sum(count for _, count in launches),
        vcpus=sum(count * size.vcpus for size, count in launches),
        ram_bytes=sum(count * size.ram_bytes for size, count in launches),
        disk_bytes=sum(count * size.disk_bytes for size, count in launches),
        gpus=dict(gpus),
    )


def check_snapshots_quota(tx: Transaction, project: Project) -> None:
    """Refuse a snapshot if the disk quota is used up. The size of a snapshot is known only when it is ready."""
    for quota, used, of, hint in _both(tx, project, "Delete a snapshot"):
        quotas.check_not_passed(quota, used, "disk_bytes", of=of, hint=hint)


def _both(tx: Transaction, project: Project, instead: str) -> Iterator[tuple[Quota, QuotaAmounts, str, str]]:
    """The quota of the project and of its organisation, each with what is used, its name, and a hint."""
    hint = f"{instead}, or ask an owner of the organisation for more: `tera quota show`"
    name, wall = name_and_quota(tx, project.organisation_id)
    if quotas.limits_nothing(wall):
        yield project.quota, store.usage(tx, project.id), f"project `{project.name}`", hint
    else:
        own, used = store.usage_of_both(tx, project.id, project.organisation_id)
        yield project.quota, own, f"project `{project.name}`", hint
        hint = f"{instead} in any of its projects, or ask the operator for more: `tera quota show`"
        yield wall, used, f"organisation `{name}`", hint


def place(
    tx: Transaction, policy: Policy, memory: FleetMemory, need: Size, count: int, terms: PlaceTerms
) -> list[Room]:
    """Choose and lock a host for each of `count` equal instances. Write nothing: `take` does that.

    Hosts with room are looked up without a lock, and checked again once they are locked. If others were faster and a
    second look would have to wait for another lock, the whole transaction starts again.
    """
    if not terms.is_plain:
        chosen = _lock_on_terms(tx, policy, need, count, terms)
    elif count == 1:
        chosen = _lock_one(tx, policy, memory, need)
    else:
        chosen = _lock_many(tx, policy, memory, need, count)
    if not chosen:
        raise _no_room(tx, policy, need, count, terms)
    return chosen


def _lock_one(tx: Transaction, policy: Policy, memory: FleetMemory, need: Size) -> list[Room]:
    for fresh in (False, True):
        candidates = memory.candidates(tx, policy, need, limit=fleet.CANDIDATES_MAX, fresh=fresh)
        if not candidates:
            return []
        locked = fleet.lock_one_host(tx, candidates, waits=not fresh)
        rooms = fleet.rooms(tx, policy, only=locked) if locked else []
        if rooms and rooms[0].fits(need):
            memory.take(rooms[0].host_id, need)
            return rooms
    raise Overtaken("other launches took the room")


def _lock_many(tx: Transaction, policy: Policy, memory: FleetMemory, need: Size, count: int) -> list[Room]:
    ids = memory.candidates_for_many(tx, policy, need, count)
    try:
        rooms = _locked(tx, policy, need, ids)
    except Overtaken:
        memory.forget()
        raise
    for id in ids:
        memory.take(id, need)
    return rooms


def _lock_on_terms(tx: Transaction, policy: Policy, need: Size, count: int, terms: PlaceTerms) -> list[Room]:
    chosen = decide(rooms_for(tx, policy, terms), need, count, terms).chosen
    return _locked(tx, policy, need, [room.host_id for room in chosen], terms.queued_id)


def _locked(
    tx: Transaction, policy: Policy, need: Size, ids: Sequence[HostId], queued_id: str = ""
) -> list[Room]:
    """Lock these hosts, and return the room of each. A host occurs once for each instance that it gets."""
    fleet.lock_hosts(tx, ids)
    locked = {id: fleet.rooms(tx, policy, only=id, queued_id=queued_id) for id in set(ids)}
    for id in ids:
        if not locked[id] or not locked[id][0].fits(need):
            raise Overtaken("other launches took the room")
        locked[id][0].take(need)
    return [locked[id][0] for id in ids]


def rooms_for(tx: Transaction, policy: Policy, terms: PlaceTerms, *, ready: bool = True) -> list[Room]:
    """The hosts that `decide` needs to see. With `ready`, only those that can take instances."""
    return fleet.rooms(
        tx,
        policy,
        only=terms.host_id if ready else None,
        site=terms.site if ready else "",
        ready=ready,
        labelled=not ready or bool(terms.labels or terms.spread or terms.together),
        queued_id=terms.queued_id,
    )


def _no_room(tx: Transaction, policy: Policy, need: Size, count: int, terms: PlaceTerms) -> Exception:
    """`BadInput` if no host is large enough, `NoCapacity` if there may be room later."""
    wanted = shape_text(need)
    if not terms.is_plain:
        return _no_room_on_terms(tx, policy, need, count, terms)
    hosts = fleet.hosts(tx, limit=HOSTS_MAX)
    if not hosts:
        return NoCapacity(
            "There is no host yet",
            hint="`make up` registers this machine. To rent one: `--site NAME --type TYPE`",
        )
    empty = fleet.rooms(tx, policy, ready=False, empty=True)
    if not any(room.fits(need) for room in empty):
        return BadInput(f"{wanted} is larger than any host", hint=_largest(empty, need))
    rooms = fleet.rooms(tx, policy)
    if not any(host.state == HostState.READY for host in hosts):
        return NoCapacity(
            f"No host accepts new instances now: {_states(hosts)}",
            hint="Try again later, or ask the operator. Deleting instances does not help",
        )
    return NoCapacity(
        f"There is no room now for {count} × ({wanted})"
        if count > 1
        else f"There is no room now for {wanted}",
        hint=((_beside_cards(rooms, need) if count == 1 else "") or _free_now(rooms, hosts))
        + ". `--queue` waits for room",
    )


def _no_room_on_terms(
    tx: Transaction, policy: Policy, need: Size, count: int, terms: PlaceTerms
) -> Exception:
    """The same for a launch that asks for certain hosts. The hint sums up what is wrong with the hosts."""
    wanted = f"{count} × ({shape_text(need)})" if count > 1 else shape_text(need)
    host = fleet.host(tx, terms.host_id) if terms.host_id else None
    if host is not None and host.state != HostState.READY:
        why = "it is drained" if host.state == HostState.DRAINING else "it does not answer"
        return NoCapacity(
            f"The host `{host.name}` accepts no new instances now: {why}",
            hint="Without `--host`, Teraflock chooses another one",
        )
    try:
        check_possible(tx, policy, need, count, terms)
    except BadInput as error:
        return error
    now = rooms_for(tx, policy, terms, ready=False)
    return NoCapacity(
        f"There is no room now for {wanted} on the allowed hosts", hint=_summary(now, need, terms)
    )


def check_possible(tx: Transaction, policy: Policy, need: Size, count: int, terms: PlaceTerms) -> None:
    """Refuse what would not fit even if all hosts were empty and ready."""
    empty = fleet.rooms(tx, policy, ready=False, empty=True, labelled=True)
    could = [replace(room, state=HostState.READY, reserved_for="") for room in empty]
    if not could or decide(could, need, count, replace(terms, avoid={})).chosen:
        return
    if not any(room.fits(need) for room in could):
        raise BadInput(f"{shape_text(need)} is larger than any host", hint=_largest(empty, need))
    wanted = f"{count} × ({shape_text(need)})" if count > 1 else shape_text(need)
    raise BadInput(
        f"The allowed hosts are too small for {wanted}, even when they are empty",
        hint=_summary(could, need, replace(terms, avoid={})),
    )


def _summary(rooms: Sequence[Room], need: Size, terms: PlaceTerms) -> str:
    """`4 hosts: not labelled `zone=a`; 1 host: drained`, the most frequent first."""
    found = Counter(obstacle.reason for room in rooms if (obstacle := obstacle_of(room, need, terms)))
    words = [f"{count_text(count, 'host')}: {reason}" for reason, count in found.most_common(3)]
    fit = sum(room.capacity(need) for room in rooms if not obstacle_of(room, need, terms))
    words += [f"{count_text(fit, 'instance')} would fit"] if fit else []
    return "; ".join([*words, "`--explain` lists all hosts"])


def _beside_cards(rooms: Sequence[Room], need: Size) -> str:
    """If the cards are free but not the rest: how much of the rest is free with them."""
    with_cards = [room for room in rooms if need.gpus and room.free_gpus.get(need.gpu, 0) >= need.gpus]
    best = max(with_cards, key=lambda room: (room.ram_bytes, room.vcpus), default=None)
    if best is None or best.ram_bytes < GIB or best.vcpus < 1:
        return ""
    vcpus, ram_gb = min(need.vcpus, best.vcpus, best.threads), min(need.ram_bytes, best.ram_bytes) // GIB
    cards = "The card is" if need.gpus == 1 else "The cards are"
    smaller = f" --disk {best.disk_bytes // GIB}" if best.disk_bytes < need.disk_bytes else ""
    words = f"{vcpus} vCPU, {ram_gb} GB RAM" + (f", {best.disk_bytes // GIB} GB disk" if smaller else "")
    return f"{cards} free with a smaller size: {words} (`--vcpus {vcpus} --ram {ram_gb}{smaller}`)"


def _largest(empty: Sequence[Room], need: Size) -> str:
    with_card = [room for room in empty if not need.gpus or room.free_gpus.get(need.gpu, 0)]
    if not with_card:
        return "No host has this GPU model. `tera shapes` lists what hosts have"
    best = max(with_card, key=lambda room: (room.free_gpus.get(need.gpu, 0), room.ram_bytes, room.vcpus))
    cards = f"{best.free_gpus.get(need.gpu, 0)}× {need.gpu}, " if need.gpus else ""
    return (
        f"The largest possible size: {cards}{min(best.vcpus, best.threads)} vCPU, {bytes_text(best.ram_bytes)} RAM,"
        f" {bytes_text(best.disk_bytes)} disk"
    )


def _states(hosts: Sequence[Host]) -> str:
    """`2 are drained, 1 does not answer`."""
    drained = sum(host.state == HostState.DRAINING for host in hosts)
    away = sum(host.state == HostState.AWAY for host in hosts)
    words = [f"{drained} {'is' if drained == 1 else 'are'} drained"] if drained else []
    words += [f"{away} {'does' if away == 1 else 'do'} not answer"] if away else []
    return ", ".join(words)


def _free_now(rooms: Sequence[Room], hosts: Sequence[Host]) -> str:
    free = [(shape.name, count_free(rooms, shape.need)) for shape in named_shapes(hosts)]
    names = [f"`{name}` ({count})" for name, count in free if count]
    if not names and any(host.state != HostState.READY for host in hosts):
        return (
            f"All other hosts are full, and some accept no new instances: {_states(hosts)}. Try again later"
        )
    if not names:
        return "All hosts are full. Stop or delete an instance"
    return f"Free now: {', '.join(names[-6:])}. `tera shapes` lists all"


def take(tx: Transaction, id: InstanceId, host_id: HostId, shape: Size, guest_ports: Sequence[int]) -> Held:
    """Claim everything that a new instance needs on a host."""
    numbers = free_ports(ports.taken_ports(tx, host_id), len(guest_ports))
    for number, guest_port in zip(numbers, guest_ports, strict=True):
        ports.take_port(tx, host_id, number, guest_port, id)
    return Held(
        vcpus=shape.vcpus,
        ram_bytes=shape.ram_bytes,
        disk_bytes=shape.disk_bytes,
        gpus=_take_cards(tx, id, host_id, shape.gpu, shape.gpus),
        ports=tuple(HeldPort(*pair) for pair in zip(numbers, guest_ports, strict=True)),
    )


def _take_cards(
    tx: Transaction, id: InstanceId, host_id: HostId, gpu: str, count: int
) -> tuple[HeldGpu, ...]:
    if not count:
        return ()
    taken = cards.take_gpus(tx, host_id, gpu, count, id)
    if len(taken) < count:
        raise NoCapacity(
            f"{len(taken)} of {count} cards `{gpu}` are free on its host",
            hint="`tera shapes` lists what is free",
        )
    return tuple(HeldGpu(slot, GpuKind(kind), gpu) for slot, kind in taken)


def take_back(tx: Transaction, policy: Policy, instance: Instance) -> Held:
    """Claim processors, memory and cards for a stopped instance again, on the host that has its disk."""
    assert instance.host_id is not None, "a stopped instance has a host"
    fleet.lock_hosts(tx, [instance.host_id])
    shape, held = instance.shape, instance.held
    if instance.spec.rental is not None:  # its host has no other instances
        cards = _take_cards(tx, instance.id, instance.host_id, shape.gpu, shape.gpus)
        return replace(held, vcpus=shape.vcpus, ram_bytes=shape.ram_bytes, gpus=cards)
    need = replace(shape, disk_bytes=max(0, shape.disk_bytes - held.disk_bytes))
    _check_room_on(tx, policy, instance, need, shape)
    return replace(
        held,
        vcpus=shape.vcpus,
        ram_bytes=shape.ram_bytes,
        disk_bytes=shape.disk_bytes,
        gpus=_take_cards(tx, instance.id, instance.host_id, shape.gpu, shape.gpus),
    )


def take_more(tx: Transaction, policy: Policy, instance: Instance, shape: Size) -> Held:
    """Claim what a new shape needs in addition to what the instance holds. It keeps its old cards until the end."""
    assert instance.host_id is not None, "a running instance has a host"
    fleet.lock_hosts(tx, [instance.host_id])
    held = instance.held
    same = sum(1 for card in held.gpus if card.gpu == shape.gpu)
    need = Size(
        gpu=shape.gpu,
        gpus=max(0, shape.gpus - same),
        vcpus=max(0, shape.vcpus - held.vcpus),
        ram_bytes=max(0, shape.ram_bytes - held.ram_bytes),
        disk_bytes=max(0, shape.disk_bytes - held.disk_bytes),
    )
    _check_room_on(tx, policy, instance, need, shape)
    return replace(
        held,
        vcpus=max(shape.vcpus, held.vcpus),
        ram_bytes=max(shape.ram_bytes, held.ram_bytes),
        disk_bytes=max(shape.disk_bytes, held.disk_bytes),
        gpus=(*held.gpus, *_take_cards(tx, instance.id, instance.host_id, shape.gpu, need.gpus)),
    )


def check_host_could(tx: Transaction, policy: Policy, instance: Instance, shape: Size) -> None:
    """Refuse a shape for a stopped instance that does not fit on its host even if the host is empty."""
    empty = fleet.rooms(tx, policy, only=instance.host_id, ready=False, empty=True)
    if not empty or not empty[0].fits(shape):
        raise BadInput(
            f"Its host is too small for {shape_text(shape)}",
            hint=_largest(empty, shape) if empty else "",
        )


def _check_room_on(tx: Transaction, policy: Policy, instance: Instance, need: Size, shape: Size) -> None:
    rooms = fleet.rooms(tx, policy, only=instance.host_id, ready=False)
    if rooms and shape.vcpus > rooms[0].threads:
        raise BadInput(
            f"Its host has {rooms[0].threads} processor threads, fewer than {shape.vcpus} vCPUs",
            hint=f"Ask for up to {rooms[0].threads}. More vCPUs would not be faster",
        )
    if not rooms or not rooms[0].fits(need):
        hosts = [host] if (host := fleet.host(tx, instance.host_id or "")) else []
        raise NoCapacity(
            f"Its host has no room now for {shape_text(shape)}",
            hint=f"{_free_now(rooms, hosts)}. To run it on another host, make an image: `tera image create`",
        )
