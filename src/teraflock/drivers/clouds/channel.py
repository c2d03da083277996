"""The input and output of a program in a rented machine. Time and bytes are limited: the machine may be hostile."""

import os
import selectors
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import IO, Final, Protocol

PIECE_BYTES: Final = 1 << 16
END_SECONDS_MAX: Final = 5.0


class GuestChannel(Protocol):
    def send(self, content: bytes) -> None:
        """Raises `OSError` if the program has ended."""
        ...

    def receive(self, seconds_max: float) -> bytes:
        """Some of its output. Empty: it has ended, or was silent for `seconds_max`."""
        ...

    def close(self) -> None:
        """End the program. May be repeated."""
        ...


class ProcessChannel:
    """A channel to a program that a local process, such as `ssh`, runs."""

    def __init__(self, process: subprocess.Popen[bytes], clean_up: Callable[[], None] = lambda: None) -> None:
        """`clean_up` removes what the process needed to connect. It may be called twice."""
        self._process = process
        self._clean_up = clean_up

    def send(self, content: bytes) -> None:
        stdin = _pipe(self._process.stdin)
        stdin.write(content)
        stdin.flush()

    def receive(self, seconds_max: float) -> bytes:
        stdout = _pipe(self._process.stdout)
        with selectors.DefaultSelector() as waiting:
            waiting.register(stdout, selectors.EVENT_READ)
            piece = os.read(stdout.fileno(), PIECE_BYTES) if waiting.select(seconds_max) else b""
        self._clean_up()
        return piece

    def close(self) -> None:
        ended(self._process)
        self._clean_up()


def ended(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and close its pipes."""
    if process.poll() is None:
        process.kill()
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            with suppress(OSError):  # what was not sent is lost with the process
                pipe.close()
    process.wait(END_SECONDS_MAX)


class Output:
    """What a program printed, up to a limit."""

    def __init__(self) -> None:
        self.stdout = bytearray()
        self.stderr = bytearray()
        self.timed_out = False


def finished(
    process: subprocess.Popen[bytes],
    stdin: bytes,
    *,
    seconds_max: float,
    bytes_max: int,
    seconds: Callable[[], float] = time.monotonic,
) -> Output:
    """Send the input and read the output until the process ends. Output over `bytes_max` is read and dropped."""
    output, over_at = Output(), seconds() + seconds_max
    with selectors.DefaultSelector() as waiting:
        for pipe, into in ((process.stdout, output.stdout), (process.stderr, output.stderr)):
            waiting.register(_pipe(pipe), selectors.EVENT_READ, into)
        sending = _sending(process, stdin)
        if next(sending, None) is not None:
            waiting.register(_pipe(process.stdin), selectors.EVENT_WRITE, sending)
        while waiting.get_map():
            if (left := over_at - seconds()) <= 0:
                output.timed_out = True
                break
            for key, _ in waiting.select(left):
                if not _passed(key, bytes_max):
                    waiting.unregister(key.fileobj)
    if not output.timed_out:
        output.timed_out = _outlasts(process, over_at - seconds())
    ended(process)
    return output


def _passed(key: selectors.SelectorKey, bytes_max: int) -> bool:
    """Send or read one piece. False: there is no more."""
    if not isinstance(key.data, bytearray):
        return next(key.data, None) is not None
    piece = os.read(key.fd, PIECE_BYTES)
    key.data.extend(piece[: max(0, bytes_max - len(key.data))])
    return bool(piece)


def _sending(process: subprocess.Popen[bytes], content: bytes) -> Iterator[int]:
    """Send a piece at each step, and close the input at the end."""
    pipe = _pipe(process.stdin)
    os.set_blocking(pipe.fileno(), False)
    sent = 0
    with suppress(OSError):  # it ended, or does not read its input
        while sent < len(content):
            yield sent
            sent += os.write(pipe.fileno(), content[sent : sent + PIECE_BYTES])
    pipe.close()


def _outlasts(process: subprocess.Popen[bytes], seconds_max: float) -> bool:
    try:
        process.wait(max(seconds_max, 0.0))
    except subprocess.TimeoutExpired:
        return True
    return False


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None, "the process was started with pipes"
    return pipe
