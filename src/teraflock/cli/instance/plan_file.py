"""`tera launch --plan FILE.json`: turn a choice of `tera plan --json` into a launch.

Only choices on own hosts can be launched. The plan's names of own hosts come from `tera host cost` and can differ from
the names of registered hosts. The instance is therefore placed on any host with such GPUs free, unless `--host` names
one.
"""

import sys
from pathlib import Path
from typing import Final

import msgspec

from teraflock.base.errors import BadInput, BrokenSource, Refused
from teraflock.plan.owned import PROVIDER
from teraflock.wire.plan import ChoiceShape
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


def choose(plan: Planned, rank: int | None) -> ChoiceShape:
    """The choice of this rank, or the best one on an own host."""
    if rank is not None:
        chosen = next((each for each in plan.choices if each.rank == rank), None)
        if chosen is None:
            raise BadInput(f"The plan has no choice {rank}", hint=f"It has {len(plan.choices)} choices")
        if not is_own(chosen):
            raise Refused(
                f"Choice {rank} is {_place(chosen)}, and only own hosts can be launched on",
                hint="Leave out `--choice` to take the best own host",
            )
        return chosen
    for each in plan.choices:
        if is_own(each):
            return each
    raise Refused(
        "No choice of the plan is a server of your own, and only those can be launched",
        hint="Add one with `tera plan server add`, or list more choices with `tera plan --top 100`",
    )


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


def _place(choice: ChoiceShape) -> str:
    return f"an offer of {choice.offer.provider}" if choice.offer else "no offer"
