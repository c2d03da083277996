"""The cards of a host with what was last read of them, and cards that are idle. Pure."""

from collections.abc import Mapping, Sequence
from datetime import datetime

import msgspec

from teraflock.wire.host import HostAnswer, HostCostAnswer, HostGpuAnswer
from teraflock.wire.telemetry import CardReadingAnswer, HostReadingAnswer
from teraflock.words.telemetry import IDLE_PERCENT_MAX


class CardLine(msgspec.Struct, frozen=True, kw_only=True):
    gpu: HostGpuAnswer
    reading: CardReadingAnswer | None
    """None: not read yet."""
    state: str
    """`lost`, `failed`, `free` or `held`."""
    holder: str
    """The name of the instance that holds it, or its id if the name is unknown."""


class IdleCards(msgspec.Struct, frozen=True, kw_only=True):
    host: str
    cards: int
    micros_per_hour: int | None
    """Their part of what the host costs. None: no cost is recorded."""
    currency: str


def card_lines(
    host: HostAnswer, reading: HostReadingAnswer | None, names: Mapping[str, str]
) -> tuple[CardLine, ...]:
    """`names`: instances on the host, by id."""
    read = {each.slot: each for each in reading.cards} if reading else {}
    lost = reading.lost if reading else ()
    return tuple(_line(gpu, read.get(gpu.slot), gpu.slot in lost, names) for gpu in host.gpus)


def _line(
    gpu: HostGpuAnswer, read: CardReadingAnswer | None, is_lost: bool, names: Mapping[str, str]
) -> CardLine:
    id = read.instance_id if read else ""
    state = "lost" if is_lost else "failed" if not gpu.healthy else "free" if gpu.free else "held"
    return CardLine(gpu=gpu, reading=read, state=state, holder="" if gpu.free else names.get(id, id))


def idle_cards(
    hosts: Sequence[HostReadingAnswer], costs: Sequence[HostCostAnswer], now: datetime
) -> tuple[IdleCards, ...]:
    """Hosts with cards that do nothing now, and what these cards cost."""
    rates = {
        each.host_id: each for each in costs if each.starts_at <= now
    }  # a later entry replaces earlier ones
    found = []
    for host in hosts:
        known = [card.utilisation_percent for card in host.cards if card.utilisation_percent is not None]
        count = sum(each < IDLE_PERCENT_MAX for each in known)
        if count:
            rate = rates.get(host.host_id)
            whole = rate.micros_per_hour if rate else None
            part = None if whole is None else whole * count // len(known)
            currency = rate.currency if rate else ""
            found.append(IdleCards(host=host.host, cards=count, micros_per_hour=part, currency=currency))
    return tuple(found)
