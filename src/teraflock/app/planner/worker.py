"""A process that computes estimates and plans: `python -m teraflock.app.planner.worker HOME`.

It reads tasks from stdin and writes answers to stdout, one at a time, each prefixed with its length. It ends when stdin
closes, so also when its server is killed. Its memory is limited, and it runs at a lower priority than the server.
"""

import gc
import os
import resource
import sys
import traceback
from collections.abc import Callable, Mapping
from typing import IO, Any, Final

import msgspec

from teraflock.app.planner.files import PlannerFiles
from teraflock.base.clock import SystemClock, today
from teraflock.base.errors import TeraflockError
from teraflock.estimate.answer import answer as estimate
from teraflock.estimate.words import understood
from teraflock.offer.service import OfferService
from teraflock.plan.answer import answer as plan
from teraflock.plan.recommend import recommend
from teraflock.plan.task import PlannerTask
from teraflock.wire.estimate import EstimateRequest, shape_estimate
from teraflock.wire.plan import PlanRequest, shape_plan
from teraflock.wire.recommendation import RecommendationRequest, ShownTerms, shape_recommendation
from teraflock.workload.words import without_files

LENGTH_BYTES: Final = 4
MEMORY_BYTES_MAX: Final = 8 << 30
"""Limit of the address space, most of which is never used. An estimate needs a few hundred MB."""
NICE: Final = 10


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
    gc.disable()  # a task creates very many objects but no cycles; collects between tasks
    while (content := read_frame(tasks)) is not None:
        task = msgspec.msgpack.decode(content, type=PlannerTask)
        write_frame(answers, msgspec.msgpack.encode(_answered(task, files)))
        gc.collect()


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
    if words.model is not None:
        words = msgspec.structs.replace(words, model=without_files(words.model))
    rates = files.rates()
    servers = files.servers() if task.with_costs else ()
    answered = plan(words, files.database(), rates, SystemClock(), servers=servers)
    return shape_plan(answered, top=words.top, rates=rates)


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
