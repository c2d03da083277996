"""A process that computes estimates and plans: `python -m teraflock.app.planner.worker HOME`.

It reads tasks from stdin and writes answers to stdout, one at a time, each prefixed with its length. It ends when stdin
closes, so also when its server is killed. Its memory is limited, and it runs at a lower priority than the server.
"""

import os
import resource
import sys
import traceback
from base64 import b64decode
from collections.abc import Callable, Mapping
from typing import IO, Any, Final

import msgspec

from teraflock.app.planner.files import PlannerFiles
from teraflock.base.clock import SystemClock, today
from teraflock.base.errors import BadInput, TeraflockError
from teraflock.base.garbage import collect_rarely
from teraflock.estimate.answer import answer as estimate
from teraflock.estimate.words import understood
from teraflock.offer.service import OfferService
from teraflock.plan.answer import answer as plan
from teraflock.plan.recommend import recommend
from teraflock.plan.service import UnsoundPlan
from teraflock.plan.task import PlannerTask
from teraflock.wire.estimate import EstimateRequest, shape_estimate
from teraflock.wire.plan import PlanRequest, shape_plan
from teraflock.wire.recommendation import RecommendationRequest, ShownTerms, shape_recommendation
from teraflock.workload.given import CONFIG, TRACE, give
from teraflock.workload.words import without_files

LENGTH_BYTES: Final = 4
MEMORY_BYTES_MAX: Final = 8 << 30
"""Limit of the address space, most of which is never used. An estimate needs a few hundred MB."""
NICE: Final = 10
_BROKEN: Final = (
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    RecursionError,
    TypeError,
    ValueError,
)
"""What computing with an inconsistent model raises."""


class PlannerAnswer(msgspec.Struct, frozen=True, kw_only=True):
    content: bytes = b""
    code: str = ""
    """The error code. Empty for a success."""
    sentence: str = ""
    hint: str = ""
    trace: str = ""
    """The stack trace of an unexpected error, for the log."""


def main(home: str) -> None:
    os.nice(NICE)
    _limit_memory()
    tasks, answers = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr  # stray prints must not mix with the answers
    files = PlannerFiles(home, SystemClock())
    collect_rarely()
    while (content := read_frame(tasks)) is not None:
        task = msgspec.msgpack.decode(content, type=PlannerTask)
        write_frame(answers, msgspec.msgpack.encode(_answered(task, files)))


def read_frame(stream: IO[bytes]) -> bytes | None:
    head = stream.read(LENGTH_BYTES)
    if len(head) < LENGTH_BYTES:
        return None
    length = int.from_bytes(head, "big")
    content = stream.read(length)
    return content if len(content) == length else None


def write_frame(stream: IO[bytes], content: bytes) -> None:
    stream.write(len(content).to_bytes(LENGTH_BYTES, "big") + content)
    stream.flush()


def _answered(task: PlannerTask, files: PlannerFiles) -> PlannerAnswer:
    try:
        shape = _COMPUTE[task.what](task, files)
        return PlannerAnswer(content=msgspec.json.encode(shape))
    except TeraflockError as error:
        if error.context:
            print(f"{error.sentence}: {dict(error.context)}", file=sys.stderr)
        return PlannerAnswer(code=error.code, sentence=error.sentence, hint=error.hint)
    except Exception:
        return PlannerAnswer(code="internal_error", trace=traceback.format_exc())


def _estimate(task: PlannerTask, files: PlannerFiles) -> dict[str, Any]:
    words = msgspec.json.decode(task.words, type=EstimateRequest)
    words = msgspec.structs.replace(words, model=without_files(words.model))
    return shape_estimate(estimate(*understood(words, files.own_cards())))


def _plan(task: PlannerTask, files: PlannerFiles) -> object:
    words = msgspec.json.decode(task.words, type=PlanRequest)
    words = msgspec.structs.replace(words, model=_model(words))
    rates = files.rates()
    servers = files.servers() if task.with_costs else ()
    try:
        answered = plan(
            words, files.database(), rates, SystemClock(), servers=servers, timeline=words.timeline
        )
    except (*_BROKEN, UnsoundPlan) as error:
        if not (words.config or words.trace):
            raise
        print(f"an uploaded model cannot be used: {error!r}", file=sys.stderr)
        raise BadInput(
            "The uploaded file does not describe a model that can be estimated",
            hint="Send the `config.json` of a model, or a file that `tera trace` wrote",
        ) from None
    return shape_plan(answered, top=words.top, rates=rates)


def _model(words: PlanRequest) -> str | None:
    """The name of the model. An uploaded file gets a name that no file on disk has."""
    if (words.model is not None) + bool(words.config) + bool(words.trace) > 1:
        raise BadInput("Give one of `model`, `config` and `trace`", hint="Leave out the other two")
    if words.config:
        return give(words.config.encode(), CONFIG)
    if words.trace:
        try:
            return give(b64decode(words.trace, validate=True), TRACE)
        except ValueError:
            raise BadInput("`trace` is not valid base64", hint="Encode the file again") from None
    return without_files(words.model) if words.model is not None else None


def _recommend(task: PlannerTask, files: PlannerFiles) -> object:
    words = msgspec.json.decode(task.words, type=RecommendationRequest)
    rates, clock = files.rates(), SystemClock()
    currency = rates.known(words.currency)
    found = recommend(words, OfferService(files.database(), rates, clock))
    return shape_recommendation(found, ShownTerms(currency, rates, today(clock)))


_COMPUTE: Final[Mapping[str, Callable[[PlannerTask, PlannerFiles], object]]] = {
    "estimate": _estimate,
    "plan": _plan,
    "recommend": _recommend,
}


def _limit_memory() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    soft = MEMORY_BYTES_MAX if hard == resource.RLIM_INFINITY else min(MEMORY_BYTES_MAX, hard)
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


if __name__ == "__main__":
    main(sys.argv[1])
