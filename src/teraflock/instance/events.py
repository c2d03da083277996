"""The events of an instance. Pure.

The meter reads them: a sequence without gaps, each with the change of phase and everything the instance holds since.
"""

from datetime import datetime

from teraflock.base.clock import microseconds
from teraflock.base.errors import TeraflockError
from teraflock.base.events import Details, Event, RandomBytes, new_event
from teraflock.instance.model import Instance
from teraflock.instance.rows import labels_text


def kinds_of(before: Instance, after: Instance) -> list[str]:
    """The kinds of events for a change, in order."""
    kinds = []
    if after.phase != before.phase:
        kinds.append("instance.moved")
    elif _amounts(after) != _amounts(before):
        kinds.append("instance.held")
    if after.problem and after.problem != before.problem:
        kinds.append("instance.troubled")
    return kinds


def problem_texts(error: Exception) -> tuple[str, str]:
    """The problem in words for the tenant and for the operator. The second is empty if both read the same."""
    if not isinstance(error, TeraflockError):
        return "Internal error in Teraflock. The operator can see the details in the log", ""
    whole = f"{error.sentence}. {error.hint}" if error.hint else error.sentence
    for_tenant: str = getattr(error, "for_tenant", "")
    return (for_tenant, whole) if for_tenant else (whole, "")


def operated(instance: Instance, act: str, reason: str, now: datetime, random_bytes: RandomBytes) -> Event:
    """The event of an operator's act, for the tenant."""
    return notice_of("instance.operated", instance, now, random_bytes, act=act, by="operator", reason=reason)


def _amounts(instance: Instance) -> tuple[object, ...]:
    held = instance.held
    amounts = (held.vcpus, held.ram_bytes, held.disk_bytes, held.snapshots_bytes, len(held.gpus))
    return (*amounts, instance.shape.gpu, instance.host_id, labels_text(instance.labels), *_bid(instance))


def _bid(instance: Instance) -> tuple[int, int]:
    """What it offers for each card, and what each card costs. Zeros: it does not bid."""
    how = instance.preemptible
    return (how.bid_micros_per_hour, how.card_micros_per_hour) if how and how.bid_micros_per_hour else (0, 0)


def host_of(before: Instance | None, after: Instance) -> str:
    """The host of a change. For an instance that is gone, its last host."""
    return after.host_id or (before.host_id if before else None) or ""


def event_of(
    kind: str,
    before: Instance | None,
    after: Instance,
    sequence: int,
    now: datetime,
    random_bytes: RandomBytes,
    *,
    place: tuple[str, int],
    last_seen: datetime | None = None,
) -> Event:
    """`place` is the region of its host, and when the host's site was last read.

    The event includes that reading only if it is later than the event: the clock was set back in between. This keeps
    the order of changes and readings known when their times no longer show it.
    """
    region, watched_us = place
    details = _metered(before, after, sequence, region)
    if after.problem:
        details["problem"] = after.problem
    if last_seen is not None:
        details["last_seen_us"] = microseconds(last_seen)
    if watched_us > microseconds(now):
        details["watched_us"] = watched_us
    return _event(kind, after, now, random_bytes, details)


def _metered(before: Instance | None, after: Instance, sequence: int, region: str) -> Details:
    held = after.held
    return {
        "sequence": sequence,
        "generation": after.generation,
        "name": after.name,
        "from": before.phase if before else "",
        "to": after.phase,
        "gpu": after.shape.gpu,
        "gpus": len(held.gpus),
        "vcpus": held.vcpus,
        "ram_bytes": held.ram_bytes,
        "disk_bytes": held.disk_bytes,
        "snapshots_bytes": held.snapshots_bytes,
        "host": host_of(before, after),
        "region": region,
        "member": after.created_by,
        **_mode(after),
        "labels": labels_text(after.labels),
        "wanted": after.wanted,
        "asked_at_us": microseconds(after.wanted_at),
    }


def _mode(instance: Instance) -> Details:
    """How it is bought. A rented machine with a bid has the spot price."""
    how, mode = instance.preemptible, instance.spec.mode
    details: Details = {"mode": "spot" if mode == "bid" and how is None else mode}
    if how and how.bid_micros_per_hour is not None:
        details |= {
            "bid_micros_per_hour": how.bid_micros_per_hour,
            "card_micros_per_hour": how.card_micros_per_hour,
        }
    if how and how.waits_since is not None:
        details["preempted"] = True
    return details


def notice_of(
    kind: str, instance: Instance, now: datetime, random_bytes: RandomBytes, **details: str | int | bool
) -> Event:
    """An event without a sequence, because it changes nothing that the meter reads."""
    return _event(kind, instance, now, random_bytes, {"name": instance.name, **details})


def _event(
    kind: str, instance: Instance, now: datetime, random_bytes: RandomBytes, details: Details
) -> Event:
    return new_event(kind, instance.id, now, random_bytes, details, project=instance.project_id)
