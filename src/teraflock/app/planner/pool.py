"""The processes that estimate and plan, each asked by one thread at a time.

They are apart from the server for three reasons: Python computes in one thread at a time, and requests must be answered
meanwhile; what takes too long can be ended; and what takes too much memory ends no one else.
"""

import selectors
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

import msgspec

from teraflock.app.planner.worker import Answer, read_frame, write_frame
from teraflock.base.errors import BadInput, TeraflockError, Unavailable
from teraflock.plan.task import Task

SECONDS_MAX: Final = 20.0
"""For one answer, which usually takes a fraction of a second. Clients wait 30."""


class TooMuchWork(BadInput):
    """The estimate or plan would take longer than the server computes for one request."""

    code = "too_much_work"
    remedy = "Ask for less at a time. The hint says what."


class PlannerPool:
    """Processes are started when they are needed, up to as many as ask at a time."""

    def __init__(self, home: str, seconds_max: float = SECONDS_MAX) -> None:
        self._home = home
        self._seconds_max = seconds_max
        self._idle: list[subprocess.Popen[bytes]] = []
        self._running: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()
        self._is_closed = False

    def compute(self, task: Task) -> bytes:
        """The answer as JSON, or the error that the process met."""
        with self._process() as process:
            answer = self._asked(process, task)
        if answer.code:
            raise _error_of(answer)
        return answer.content

    def close(self) -> None:
        """End all processes, also those that compute."""
        with self._lock:
            self._is_closed = True
            for process in self._running:
                process.kill()  # the thread that waits for it cleans up
            idle, self._idle = self._idle, []
        for process in idle:
            _end(process)

    @contextmanager
    def _process(self) -> "Iterator[subprocess.Popen[bytes]]":
        with self._lock:
            if self._is_closed:
                raise Unavailable("The server ends", hint="Try again in a moment")
            process = self._taken()
            self._running.add(process)
        try:
            yield process
        except BaseException:
            process.kill()  # what it would still say is no answer to the next question
            process.wait()
            raise
        finally:
            with self._lock:
                self._running.discard(process)
                is_of_use = process.poll() is None and not self._is_closed
                if is_of_use:
                    self._idle.append(process)
            if not is_of_use:
                _end(process)

    def _taken(self) -> "subprocess.Popen[bytes]":
        while self._idle:
            process = self._idle.pop()
            if process.poll() is None:
                return process
            _end(process)  # it was killed while it waited
        return self._started()

    def _started(self) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-m", "teraflock.app.planner.worker", self._home]
        # in a session of its own: Ctrl-C ends the server, and with the server's end of the pipe this one
        return subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )

    def _asked(self, process: "subprocess.Popen[bytes]", task: Task) -> Answer:
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
                    f"This takes longer than the {self._seconds_max:g} s the server gives to one answer",
                    hint="Ask about fewer GPUs or machines, or run `tera` on your own machine",
                )
        content = read_frame(process.stdout)
        if content is None:
            raise _died()
        return msgspec.msgpack.decode(content, type=Answer)


def _died() -> Unavailable:
    return Unavailable("The process that computed this ended before its answer", hint="Try again")


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout):
        assert stream is not None
        with suppress(OSError):
            stream.close()


def _error_of(answer: Answer) -> Exception:
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
