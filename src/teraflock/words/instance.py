"""Instances as text: their state, table columns and details."""

import shlex
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from teraflock.base.money import decimals_for
from teraflock.base.quantities import bytes_text
from teraflock.words.bid import bid_text
from teraflock.words.bill import cost_text, price_text
from teraflock.words.shape import cards_text
from teraflock.words.table import Field, Fields
from teraflock.words.text import SIMULATED, age_text, details_text, duration_text, time_text

if TYPE_CHECKING:
    from teraflock.wire.bill import CostAnswer
    from teraflock.wire.instance import InstanceAnswer, RentalAnswer


def fields(now: datetime, costs: "Mapping[str, CostAnswer]") -> "Fields[InstanceAnswer]":
    """`costs` are keyed by instance id."""
    decimals = decimals_for(each.micros for each in costs.values())
    return (
        Field("NAME", lambda each: each.name, flexible=True),
        Field("STATE", state_text),
        Field("GPUS", lambda each: cards_text(each.shape), worth=8),
        Field("VCPUS", lambda each: str(each.shape.vcpus), right=True, worth=4),
        Field("RAM", lambda each: bytes_text(each.shape.ram_bytes), right=True, worth=4),
        Field("SSH", lambda each: f"{each.ssh.host}:{each.ssh.port}" if each.ssh else "", worth=7),
        Field("ADDRESS", lambda each: each.private_address or "", worth=3),
        Field("HOST", lambda each: each.host or rental_text(each), flexible=True, worth=3),
        Field("IMAGE", lambda each: each.image, flexible=True, worth=2),
        Field("AGE", lambda each: age_text(each.created_at, now), right=True, worth=5),
        Field("PRICE", lambda each: price_text(costs.get(each.id)), right=True, worth=5),
        Field("SO FAR", lambda each: cost_text(costs.get(each.id), decimals), right=True, worth=4),
        Field("PROBLEM", lambda each: each.problem, flexible=True, worth=6),
    )


def state_text(instance: "InstanceAnswer") -> str:
    """The state, the operation in progress, the exit code of a command, and a mark for simulated instances."""
    words = [instance.state]
    if instance.operation and instance.state not in ("queued", "starting", "stopping", "deleting"):
        words.append(f"({instance.operation})")
    if instance.exit_code is not None:
        words.append(f"(exit {instance.exit_code})")
    if instance.user_data and instance.user_data.exit_code:
        words.append(f"(user-data: exit {instance.user_data.exit_code})")
    if instance.waits_for_cards:
        words.append("(waits for GPUs)")
    elif instance.leaving_at:
        words.append("(leaving)")
    if instance.simulated:
        words.append(SIMULATED)
    return " ".join(words)


def rental_text(instance: "InstanceAnswer") -> str:
    """Where a rented instance is: `sky/east`."""
    return f"{instance.site}/{instance.rental.region}" if instance.rental else ""


def offers_text(rental: "RentalAnswer") -> str:
    """Which of its offers is used, and what comes next."""
    if not rental.candidates:
        return ""
    after = rental.candidates[rental.candidate + 1 :]
    next_one = f"; next: {after[0].type} at {after[0].site} in {after[0].region}" if after else ""
    return f"{rental.candidate + 1} of {len(rental.candidates)}{next_one}"


def facts(
    instance: "InstanceAnswer", now: datetime, cost: "CostAnswer | None" = None
) -> Iterator[tuple[str, str]]:
    """All details of an instance as names and values. Missing values are empty."""
    shape = instance.shape
    yield "problem", instance.problem
    yield (
        "notice",
        f"{instance.notice} (`tera show {instance.name} --acknowledge`)" if instance.notice else "",
    )
    if instance.hold:
        since = f"{time_text(instance.hold.since)} UTC"
        yield "on hold", f"stopped by the {instance.hold.by} at {since}: {instance.hold.reason}"
    doing = [instance.operation, instance.step and f"after {instance.step}"]
    yield "doing", ": ".join(filter(None, [" ".join(filter(None, doing)), instance.doing]))
    yield "id", instance.id
    yield "GPUs", f"{cards_text(shape)} ({shape.gpu_name})" if shape.gpus else ""
    yield "cards", ", ".join(each.slot for each in instance.gpus)
    yield "vCPUs", str(shape.vcpus)
    yield "memory", bytes_text(shape.ram_bytes)
    yield "disk", bytes_text(shape.disk_bytes)
    yield "image", instance.image
    yield "data", ", ".join(f"/data/{each}" for each in instance.data)
    yield "host", instance.host or ""
    yield "site", instance.site
    if instance.rental:
        yield "rented", f"{instance.rental.type} in {instance.rental.zone or instance.rental.region}"
        yield "offer", offers_text(instance.rental)
    yield "mode", instance.mode if instance.mode != "on-demand" else ""
    yield "bid", bid_text(instance)
    yield (
        "leaves",
        f"{time_text(instance.leaving_at)} UTC: others need its GPUs" if instance.leaving_at else "",
    )
    yield "restarts", instance.restart_policy
    yield "address", ", ".join(f"{each.address} (network `{each.network}`)" for each in instance.interfaces)
    yield "IPv6", ", ".join(each.ipv6_address for each in instance.interfaces if each.ipv6_address)
    yield "SSH", ssh_text(instance)
    yield "Jupyter", jupyter_text(instance)
    yield "command", shlex.join(instance.command)
    yield "exit code", "" if instance.exit_code is None else str(instance.exit_code)
    yield "user-data", user_data_text(instance)
    yield "time limit", time_limit_text(instance, now)
    if instance.delete_when_done:
        yield "when done", "deleted; its log and exit code are kept for 7 days"
    yield "graphics", "EGL and Vulkan" if instance.graphics else ""
    yield "labels", details_text(instance.labels)
    yield "price", price_text(cost)
    yield "cost so far", cost_text(cost)
    yield "launched", f"{time_text(instance.created_at)} UTC ({age_text(instance.created_at, now)} ago)"
    if instance.running_since:
        yield (
            "running since",
            f"{time_text(instance.running_since)} UTC ({age_text(instance.running_since, now)})",
        )


def jupyter_text(instance: "InstanceAnswer") -> str:
    found = instance.jupyter
    if found is None:
        return ""
    return f"`tera jupyter {instance.name}` connects to it through SSH" if found.through_ssh else found.url


def user_data_text(instance: "InstanceAnswer") -> str:
    found = instance.user_data
    if found is None:
        return ""
    if found.state == "running":
        return "running"
    if found.exit_code is None:
        return "ended; the exit code is unknown"
    see = f"; see its output with `tera logs {instance.name} --user-data`" if found.exit_code else ""
    return f"{'failed' if found.exit_code else 'done'}, exit code {found.exit_code}{see}"


def time_limit_text(instance: "InstanceAnswer", now: datetime) -> str:
    if instance.time_limit_seconds is None:
        return ""
    limit = duration_text(instance.time_limit_seconds)
    if instance.stop_at is None:
        return f"{limit} after each start"
    reached = instance.wanted != "running" and now >= instance.stop_at
    does = "deletes" if instance.delete_when_done else "stops"
    return f"{limit}, {'reached' if reached else f'{does} it'} {time_text(instance.stop_at)} UTC"


def ssh_text(instance: "InstanceAnswer") -> str:
    """The ssh command for anyone who has the SSH key. `tera ssh` also checks the host key."""
    ssh = instance.ssh
    return f"ssh -p {ssh.port} {ssh.user}@{ssh.host}" if ssh else ""
