"""The processes that estimate and plan. Each is used by one thread at a time.

They are separate from the server for three reasons: Python runs one thread at a time, and the server must keep
answering requests; a process that takes too long can be killed; and one that uses too much memory does not affect the
server.
"""

import selectors
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

import msgspec

from teraflock.app.planner.worker import PlannerAnswer, read_frame, write_frame
from teraflock.base.errors import BadInput, TeraflockError, Unavailable
from teraflock.plan.task import PlannerTask

SECONDS_MAX: Final = 20.0
"""Time limit of one task, which usually takes a fraction of a second. Clients wait 30 seconds."""


class TooMuchWork(BadInput):
    """The estimate or plan would take longer than the server computes for one request."""

    code = "too_much_work"
    remedy = "Ask for less at a time. The hint says what."


class PlannerPool:
    """Starts processes on demand, one for each concurrent request."""

    def __init__(self, home: str, seconds_max: float = SECONDS_MAX) -> None:
        self._home = home
        self._seconds_max = seconds_max
        self._idle: list[subprocess.Popen[bytes]] = []
        self._running: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()
        self._is_closed = False

    def compute(self, task: PlannerTask) -> bytes:
        """Return the answer as JSON. Raise the error if the process reported one."""
        with self._process() as process:
            answer = self._ask(process, task)
        if answer.code:
            raise _error_of(answer)
        return answer.content

    def close(self) -> None:
        """Stop all processes, including busy ones."""
        with self._lock:
            self._is_closed = True
            for process in self._running:
                process.kill()  # the waiting thread cleans up
            idle, self._idle = self._idle, []
        for process in idle:
            _end(process)

    @contextmanager
    def _process(self) -> "Iterator[subprocess.Popen[bytes]]":
        with self._lock:
            if self._is_closed:
                raise Unavailable("The server is shutting down", hint="Try again in a moment")
            process = self._idle_or_new()
            self._running.add(process)
        try:
            yield process
        except BaseException:
            process.kill()  # its late answer must not be taken for that of the next task
            process.wait()
            raise
        finally:
            with self._lock:
                self._running.discard(process)
                is_reusable = process.poll() is None and not self._is_closed
                if is_reusable:
                    self._idle.append(process)
            if not is_reusable:
                _end(process)

    def _idle_or_new(self) -> "subprocess.Popen[bytes]":
        while self._idle:
            process = self._idle.pop()
            if process.poll() is None:
                return process
            _end(process)  # it died while it was idle
        return self._start()

    def _start(self) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-m", "teraflock.app.planner.worker", self._home]
        # In its own session, so that Ctrl-C reaches only the server. The process ends when the server closes the pipe.
        return subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )

    def _ask(self, process: "subprocess.Popen[bytes]", task: PlannerTask) -> PlannerAnswer:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            write_frame(process.stdin, msgspec.msgpack.encode(task))
        except BrokenPipeError:
            raise _died() from None
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            if not selector.select(self._seconds_max):
                raise TooMuchWork(
                    f"The request took longer than the limit of {self._seconds_max:g} s",
                    hint="Request fewer GPUs or machines, or run `tera` on your own machine",
                )
        content = read_frame(process.stdout)
        if content is None:
            raise _died()
        return msgspec.msgpack.decode(content, type=PlannerAnswer)


def _died() -> Unavailable:
    return Unavailable("The planner process ended unexpectedly", hint="Try again")


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout):
        assert stream is not None
        with suppress(OSError):
            stream.close()


def _error_of(answer: PlannerAnswer) -> Exception:
    if answer.trace:
        return RuntimeError(f"a planner process failed:\n{answer.trace}")
    kind = _by_code().get(answer.code, TeraflockError)
    return kind(answer.sentence, hint=answer.hint)


def _by_code() -> dict[str, type[TeraflockError]]:
    found: dict[str, type[TeraflockError]] = {}
    waiting: list[type[TeraflockError]] = [TeraflockError]
    while waiting:
        kind = waiting.pop()
        found.setdefault(kind.code, kind)
        waiting += kind.__subclasses__()
    return found
