"""A simulated shell: it echoes what is typed, and runs the programs of a simulated guest, line by line."""

import shlex
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from teraflock.base.errors import TeraflockError
from teraflock.instance.driver import Ran

LINE_BYTES_MAX: Final = 4096


class SimulatedTerminal:
    def __init__(
        self, hostname: str, run: Callable[[Sequence[str]], Ran], *, columns: int, rows: int
    ) -> None:
        self._prompt = f"root@{hostname} (SIMULATED):~# ".encode()
        self._run = run
        self.size = (columns, rows)
        self._line = bytearray()
        self._output: deque[bytes] = deque()
        self._ended = False
        self._changed = threading.Condition()
        self._put(b"SIMULATED guest: nothing here is real.\r\n" + self._prompt)

    def read(self) -> bytes:
        with self._changed:
            while not self._output and not self._ended:
                self._changed.wait()
            return self._output.popleft() if self._output else b""

    def write(self, content: bytes) -> None:
        for at in range(len(content)):
            self._type(content[at : at + 1])

    def resize(self, columns: int, rows: int) -> None:
        self.size = (columns, rows)

    def close(self) -> None:
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def _type(self, key: bytes) -> None:
        if key in (b"\r", b"\n"):
            self._put(b"\r\n")
            line, self._line = bytes(self._line), bytearray()
            self._do(line.decode("utf-8", "replace"))
        elif key in (b"\x7f", b"\x08"):
            if self._line:
                text = bytes(self._line).decode("utf-8", "replace")[:-1]
                self._line = bytearray(text.encode())
                self._put(b"\b \b")
        elif key == b"\x03":
            self._line.clear()
            self._put(b"^C\r\n" + self._prompt)
        elif key == b"\x04" and not self._line:
            self._put(b"logout\r\n")
            self.close()
        elif (key >= b" " or key == b"\t") and len(self._line) < LINE_BYTES_MAX:
            self._line += key
            self._put(key)

    def _do(self, line: str) -> None:
        try:
            words = shlex.split(line)
        except ValueError as error:
            self._put(f"{error}\r\n".encode() + self._prompt)
            return
        if words[:1] == ["exit"]:
            self._put(b"logout\r\n")
            self.close()
            return
        if words[:2] == ["stty", "size"]:
            self._put(f"{self.size[1]} {self.size[0]}\r\n".encode())
        elif words:
            self._put(self._ran(words))
        self._put(self._prompt)

    def _ran(self, words: Sequence[str]) -> bytes:
        try:
            ran = self._run(words)
        except TeraflockError as error:
            return f"{error.sentence}\r\n".encode()
        return (ran.stdout + ran.stderr).replace(b"\n", b"\r\n")

    def _put(self, content: bytes) -> None:
        with self._changed:
            self._output.append(content)
            self._changed.notify_all()
