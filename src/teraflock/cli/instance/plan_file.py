"""`--plan FILE.json`: from a choice that `tera plan --json` made to what is launched.

Only own servers can be launched on. The plan names a server of the price book; the server it is launched on is any of
the cloud's hosts with such cards free, unless `--host` names one: the book's names and the hosts' need not be the same.
"""

import sys
from pathlib import Path
from typing import Final

import msgspec

from teraflock.base.errors import BadInput, BrokenSource, Refused
from teraflock.plan.owned import PROVIDER
from teraflock.wire.plan import ChoiceShape
from teraflock.wire.shape import ShapeRequest

PLAN_BYTES_MAX: Final = 256 << 20  # a plan over a million offers has 100 MB of reasons


class Planned(msgspec.Struct, frozen=True):
    """A plan as far as a launch reads it: the reasons against all other offers are many, and skipped."""

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
        raise BadInput(f"The plan `{path}` cannot be read: {error.strerror}") from None
    try:
        return msgspec.json.decode(content, type=Planned)
    except msgspec.MsgspecError as error:
        raise BrokenSource(
            f"`{path}` is no plan: {error}", hint="`tera plan … --json > FILE.json` writes one"
        ) from None


def choose(plan: Planned, rank: int | None) -> ChoiceShape:
    """The choice of that rank, or the best one on an own server."""
    if rank is not None:
        chosen = next((each for each in plan.choices if each.rank == rank), None)
        if chosen is None:
            raise BadInput(f"The plan has no choice {rank}", hint=f"It has {len(plan.choices)}")
        if not is_own(chosen):
            raise Refused(f"Choice {rank} is {_place(chosen)}: only own servers can be launched on")
        return chosen
    for each in plan.choices:
        if is_own(each):
            return each
    raise Refused(
        "No choice of the plan is an own server: only those can be launched on",
        hint="`tera plan server add` adds one; `tera plan --top 100` shows more choices",
    )


def is_own(choice: ChoiceShape) -> bool:
    return choice.offer is not None and choice.offer.provider == PROVIDER


def shape_of(choice: ChoiceShape) -> ShapeRequest:
    """Its cards; processors, memory and disk follow in proportion, as for every launch that does not name them."""
    assert choice.offer is not None, "an own server has an offer"
    gpu = choice.offer.gpu or choice.offer.gpu_name
    return ShapeRequest(gpu=gpu, gpus=choice.gpu_count // choice.instances)


def server_of(choice: ChoiceShape) -> str:
    assert choice.offer is not None, "an own server has an offer"
    return choice.offer.instance_type


def _place(choice: ChoiceShape) -> str:
    return f"an offer of {choice.offer.provider}" if choice.offer else "no offer"
