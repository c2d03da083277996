"""NVIDIA's management library, with every failure handled.

The library may be absent, have no driver, or lose a card between two queries. None of that ends an inspection: a
failed query costs only its own answer.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any, TypeVar

T = TypeVar("T")


class NoNvml(Exception):
    """Why NVML is unavailable, in one sentence. Never leaves this folder."""


@contextmanager
def opened() -> Iterator[Any]:
    """Open the library for queries."""
    try:
        pynvml: Any = import_module("pynvml")  # optional, and untyped
    except ImportError:
        raise NoNvml("Cannot read NVIDIA cards: install `teraflock[host]`") from None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        raise NoNvml(f"NVIDIA's driver does not answer: {error}") from None
    try:
        yield pynvml
    finally:
        with suppress(pynvml.NVMLError):  # the driver is gone, but the results are already read
            pynvml.nvmlShutdown()


class Queries:
    """Queries to one card. Unsupported features return None. Failed queries are noted in `unread`."""

    def __init__(self, nvml: Any) -> None:
        self._nvml = nvml
        self.unread: dict[str, str] = {}
        self.lost = False
        """Whether the driver lost the card after listing it."""

    def ask(self, what: str, *ways: Callable[[], T]) -> T | None:
        """The answer of the first function that works: functions come and go between drivers."""
        reason = ""
        for way in ways:
            try:
                return way()
            except Exception as error:  # a broken card fails in many ways
                self.lost |= self._has_code(error, self._nvml.NVML_ERROR_GPU_IS_LOST)
                if not self._is_absence(error):
                    reason = str(error) or type(error).__name__
        if reason:
            self.unread[what] = reason
        return None

    def _is_absence(self, error: Exception) -> bool:
        """Whether the card or driver lacks the feature. AttributeError: the installed nvidia-ml-py lacks it."""
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
    """Older releases of nvidia-ml-py return bytes."""
    return value if isinstance(value, str) else value.decode("utf-8", "replace")
