"""`tera launch --plan FILE.json`: turn a choice of `tera plan --json` into a launch.

A choice of a provider is rented there. For a choice of an own host, any host with such GPUs is used unless `--host`
names one: the plan's names of own hosts come from `tera host cost` and can differ from those of registered hosts.
"""

import sys
from pathlib import Path
from typing import Final

import msgspec

from teraflock.base.errors import BadInput, BrokenSource, Refused
from teraflock.base.limits import ALTERNATIVES_MAX
from teraflock.plan.owned import PROVIDER
from teraflock.wire.offer import OfferShape
from teraflock.wire.plan import ChoiceShape
from teraflock.wire.renting import can_be_launched
from teraflock.wire.shape import ShapeRequest

PLAN_BYTES_MAX: Final = 256 << 20  # a plan over a million offers has 100 MB of rejections


class Planned(msgspec.Struct, frozen=True):
    """The part of a plan that a launch reads. The rejected offers are skipped: there can be very many."""

    choices: tuple[ChoiceShape, ...]


def read_plan(path: str) -> Planned:
    """`-` is stdin."""
    try:
        if path == "-":
            content = sys.stdin.buffer.read(PLAN_BYTES_MAX)
        else:
            with Path(path).open("rb") as file:
                content = file.read(PLAN_BYTES_MAX)
    except OSError as error:
        raise BadInput(
            f"The plan `{path}` cannot be read: {error.strerror}",
            hint="Create one with `tera plan … --json > FILE.json`",
        ) from None
    try:
        return msgspec.json.decode(content, type=Planned)
    except msgspec.MsgspecError as error:
        raise BrokenSource(
            f"`{path}` is not a plan: {error}", hint="Create one with `tera plan … --json > FILE.json`"
        ) from None


def choose(plan: Planned, rank: int | None, *, rented: bool = False) -> ChoiceShape:
    """The choice of this rank. Without one: the best on an own host, or the best offer that can be launched if there is
    none or with `rented`."""
    if rank is not None:
        chosen = next((each for each in plan.choices if each.rank == rank), None)
        if chosen is None:
            raise BadInput(f"The plan has no choice {rank}", hint=f"It has {len(plan.choices)} choices")
        if chosen.offer is None:
            raise Refused(f"Choice {rank} names no offer", hint="Choose another rank")
        return chosen
    own = [each for each in plan.choices if is_own(each)]
    offers = [each for each in plan.choices if each.offer is not None and not is_own(each)]
    usable = [each for each in offers if each.offer is not None and can_be_launched(each.offer)]
    found = usable or offers if rented else own or usable or offers
    if not found:
        raise Refused(
            "The plan has no choice that can be launched",
            hint="Add a server with `tera plan server add`, or list more choices with `tera plan --top 100`",
        )
    return found[0]


def offers(plan: Planned, first: ChoiceShape) -> tuple[OfferShape, ...]:
    """The offers after the first one that a launch can rent in its place, with the same number of machines."""
    after = plan.choices[plan.choices.index(first) + 1 :]
    alike = [each for each in after if each.instances == first.instances and not is_own(each)]
    found = [each.offer for each in alike if each.offer is not None and can_be_launched(each.offer)]
    return tuple(each for each in found if each.mode != "bid")[:ALTERNATIVES_MAX]


def is_own(choice: ChoiceShape) -> bool:
    return choice.offer is not None and choice.offer.provider == PROVIDER


def shape_of(choice: ChoiceShape) -> ShapeRequest:
    """The GPUs of a choice. vCPUs, memory and disk follow in proportion, as in every launch that omits them."""
    assert choice.offer is not None, "an own host has an offer"
    gpu = choice.offer.gpu or choice.offer.gpu_name
    return ShapeRequest(gpu=gpu, gpus=choice.gpu_count // choice.instances)


def server_of(choice: ChoiceShape) -> str:
    assert choice.offer is not None, "an own host has an offer"
    return choice.offer.instance_type
