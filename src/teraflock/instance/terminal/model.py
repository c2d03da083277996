"""What an engine must offer for terminals, and one open terminal."""

import threading
from collections.abc import Callable
from datetime import datetime
from typing import Final, Protocol, runtime_checkable

from teraflock.base.errors import TooMany
from teraflock.instance.driver import Handle
from teraflock.instance.model import InstanceId
from teraflock.tenant.model import ProjectId

UNREAD_BYTES_MAX: Final = 1 << 20
"""Output that the reader has not received yet. Beyond it, the shell waits, as it does on any slow terminal."""
KEPT_BYTES: Final = 64 << 10
"""Output that was sent and is kept, for a reader who lost the connection and comes back."""


class EngineTerminal(Protocol):
    """A shell in a guest."""

    def read(self) -> bytes:
        """Wait for output. Empty: the shell ended."""
        ...

    def write(self, content: bytes) -> None: ...

    def resize(self, columns: int, rows: int) -> None: ...

    def close(self) -> None:
        """End the shell, and wake a thread that waits in `read`. May be called twice."""
        ...


@runtime_checkable
class TerminalDriver(Protocol):
    """An engine that can open terminals."""

    def open_terminal(self, handle: Handle, *, columns: int, rows: int) -> EngineTerminal: ...


class OpenTerminal:
    """One terminal. A thread of its own reads from the engine; readers take the output by its place in the stream.

    Invariants: at most `UNREAD_BYTES_MAX` are held that no reader has received; output is never skipped.
    """

    def __init__(
        self,
        id: str,
        *,
        project_id: ProjectId,
        instance_id: InstanceId,
        key_id: str,
        organisation_id: str,
        engine: EngineTerminal,
        opened_at: datetime,
    ) -> None:
        self.id = id
        self.project_id = project_id
        self.instance_id = instance_id
        self.key_id = key_id
        self.organisation_id = organisation_id
        self.engine = engine
        self.readers = 0
        self.left_at = opened_at
        """When the last reader left, or when it was opened."""
        self.ended = False
        self._kept = bytearray()
        self._start = 0
        """The place in the stream of the first kept byte."""
        self._received = 0
        self._typed = bytearray()
        self._changed = threading.Condition()
        self._on_change: list[Callable[[], object]] = []

    def pump(self) -> None:
        """Read until the shell ends. Runs in a thread of its own."""
        try:
            while content := self.engine.read():
                with self._changed:
                    self._kept += content
                    self._tell()
                    while (
                        not self.ended and self._start + len(self._kept) - self._received > UNREAD_BYTES_MAX
                    ):
                        self._changed.wait()
                    if self.ended:
                        return
        finally:
            self.end()

    def type(self, content: bytes) -> None:
        """Pass input to the shell, in order. It does not wait: a shell need not read what is typed."""
        with self._changed:
            if len(self._typed) + len(content) > UNREAD_BYTES_MAX:
                raise TooMany("The shell does not read its input", hint="Wait, or close the terminal")
            self._typed += content
            self._changed.notify_all()

    def feed(self) -> None:
        """Write the input until the shell ends. Runs in a thread of its own, because a write may wait for the guest."""
        while True:
            with self._changed:
                while not self._typed and not self.ended:
                    self._changed.wait()
                if self.ended:
                    return
                content, self._typed = bytes(self._typed), bytearray()
            self.engine.write(content)

    def take(self, place: int) -> tuple[int, bytes]:
        """The output from a place in the stream on, and the place after it. What is too old is left out."""
        with self._changed:
            first = min(max(place, self._start), self._start + len(self._kept))
            content = bytes(self._kept[first - self._start :])
            after = first + len(content)
            self._received = max(self._received, first)
            surplus = self._received - self._start - KEPT_BYTES
            if surplus > 0:
                del self._kept[:surplus]
                self._start += surplus
            self._changed.notify_all()
            return after, content

    def watch(self, on_change: Callable[[], object]) -> Callable[[], None]:
        """Call `on_change`, in another thread, when there is more output. Returns the function that stops it."""
        with self._changed:
            self._on_change.append(on_change)
        return lambda: self._on_change.remove(on_change)

    def end(self) -> None:
        with self._changed:
            self.ended = True
            self._tell()
        self.engine.close()

    def _tell(self) -> None:
        self._changed.notify_all()
        for each in tuple(self._on_change):
            each()
