"""NVIDIA's management library, asked in a way that survives it.

What holds: the library may be absent, have no driver behind it, or lose a card between two questions; none of that
ends an inspection. One question that fails costs one answer.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any, TypeVar

T = TypeVar("T")


class NoNvml(Exception):
    """Why cards cannot be asked, in one sentence. Never leaves this folder."""


@contextmanager
def opened() -> Iterator[Any]:
    """The library, ready to be asked."""
    try:
        pynvml: Any = import_module("pynvml")  # an extra of the package, and untyped
    except ImportError:
        raise NoNvml("NVIDIA's cards cannot be asked: install `teraflock[host]`") from None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        raise NoNvml(f"NVIDIA's driver does not answer: {error}") from None
    try:
        yield pynvml
    finally:
        with suppress(pynvml.NVMLError):  # it is gone already, and what was read is read
            pynvml.nvmlShutdown()


class Questions:
    """To one card. What it does not have is None; what it should have and did not tell is noted in `unread`."""

    def __init__(self, nvml: Any) -> None:
        self._nvml = nvml
        self.unread: dict[str, str] = {}
        self.lost = False
        """It was there when it was counted, and is no more."""

    def ask(self, what: str, *ways: Callable[[], T]) -> T | None:
        """The first of the ways that has an answer: functions come and go between drivers."""
        reason = ""
        for way in ways:
            try:
                return way()
            except Exception as error:  # a broken card breaks in ways nobody has listed
                self.lost |= self._has_code(error, self._nvml.NVML_ERROR_GPU_IS_LOST)
                if not self._is_absence(error):
                    reason = str(error) or type(error).__name__
        if reason:
            self.unread[what] = reason
        return None

    def _is_absence(self, error: Exception) -> bool:
        """Whether the card or the driver does not have it; AttributeError: the installed nvidia-ml-py does not."""
        nvml = self._nvml
        return isinstance(error, AttributeError) or self._has_code(
            error,
            nvml.NVML_ERROR_NOT_SUPPORTED,
            nvml.NVML_ERROR_FUNCTION_NOT_FOUND,
            nvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH,
        )

    def _has_code(self, error: Exception, *codes: int) -> bool:
        return isinstance(error, self._nvml.NVMLError) and error.value in codes


def text(value: str | bytes) -> str:
    """Older releases of nvidia-ml-py give bytes."""
    return value if isinstance(value, str) else value.decode("utf-8", "replace")
