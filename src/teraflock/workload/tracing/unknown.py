"""Placeholders for values that only a GPU would compute, and notes where the script used one.

A trace has shapes and no values. So `.item()` of a GPU tensor returns `Unknown`: a float of 1.0 that can be formatted
and added. Comparisons with it are False and noted. It is refused as a size, an index or a loop bound, because the
trace would be wrong without notice.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from teraflock.base.errors import BadInput

NOTES_MAX: Final = 20
FRAMES_MAX: Final = 60
OURS: Final = frozenset(str(each) for each in Path(__file__).parent.glob("*.py"))
PASSED: Final = ("/torch/", "/teraflock/", "unittest", "contextlib")
"""Files between the user's code and ours that only forward a call."""


CHECKING: Final = "/torch/distributions/"
"""It checks its arguments, which no user wants to read about."""


class Notes:
    """What the user should know about a trace: each sentence once, with the line of the script."""

    def __init__(self, folder: Path) -> None:
        self.sentences: list[str] = []
        self._known: set[str] = set()
        self._folder = str(folder.resolve())

    def add(self, sentence: str, *, key: str = "", line: bool = False) -> None:
        """Notes with the same `key` are the same. With `line`, only calls from the user's own code are noted."""
        if (key or sentence) in self._known or len(self.sentences) >= NOTES_MAX:
            return
        where = self.line(own=True) if line else ""
        if line and not where:
            return
        self._known.add(key or sentence)
        self.sentences.append(f"{where}: {sentence}" if where else sentence)

    def line(self, *, own: bool = False) -> str:
        """The innermost current line of the user's code. With `own`, only if no other library called us."""
        frame: Any = sys._getframe(1)
        for _ in range(FRAMES_MAX):
            if frame is None:
                break
            name = frame.f_code.co_filename
            if name.startswith(self._folder) and "site-packages" not in name and name not in OURS:
                return f"{Path(name).name}, line {frame.f_lineno}"
            if own and (CHECKING in name or not any(part in name for part in PASSED)):
                break
            frame = frame.f_back
        return ""


BOXES: Final = {"poolers.py": 4, "roi_heads.py": 64}
"""Where torchvision keeps one box in so many: pyramids have four levels. Of 512 sampled boxes, those that hold an
object are few at the start: 1, 2, 6 and 8 where a model with random weights saw 1, 2, 3 and 7 objects."""


def boxes_kept() -> int:
    """One in how many boxes a detection model of torchvision keeps where it asks now; 0 if other code asks."""
    frame: Any = sys._getframe(1)
    while frame is not None and any(part in frame.f_code.co_filename for part in PASSED):
        frame = frame.f_back
    name = Path(frame.f_code.co_filename) if frame is not None else Path()
    return BOXES.get(name.name, 1) if "torchvision" in name.parts else 0


def refuse_use(notes: Notes, use: str) -> BadInput:
    where = notes.line()
    return BadInput(
        f"{where + ': ' if where else ''}a value that only a GPU would compute is used as {use}",
        hint="A trace has shapes and no values. Compute this on the CPU, or use a constant",
    )


def unknown_type(notes: Notes) -> type[float]:
    """The class of placeholders of one trace."""

    def equal(self: Any, other: object) -> bool:
        return other is self or compared(self, other)  # `x != x` asks for a NaN

    def different(self: Any, other: object) -> bool:
        return other is not self and compared(self, other)

    def compared(self: Any, other: object) -> bool:
        notes.add(
            "a comparison with a value that only a GPU would compute counts as false",
            key="compared",
            line=True,
        )
        return False

    def kept(name: str) -> Callable[..., Any]:
        plain = getattr(float, name)

        def result(self: Any, *args: Any) -> Any:
            try:
                value = plain(self, *args)
            except (ZeroDivisionError, OverflowError):
                value = 1.0
            return Unknown(value) if type(value) is float else value

        return result

    class Unknown(float):
        __lt__ = __le__ = __gt__ = __ge__ = compared
        __eq__, __ne__ = equal, different
        __hash__ = float.__hash__

        def __bool__(self) -> bool:
            return compared(self, None)

        def __index__(self) -> int:
            raise refuse_use(notes, "a size, an index or a loop bound")

        def __int__(self) -> int:
            notes.add("`int()` of a value that only a GPU would compute counts as 1", key="int", line=True)
            return 1

        def __round__(self, digits: Any = None) -> Any:
            return Unknown(1.0)

        def __format__(self, spec: str) -> str:
            return formatted(spec)

        def __repr__(self) -> str:
            return PLACEHOLDER

        __str__ = __repr__

    for name in (
        "add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "floordiv", "rfloordiv", "mod",
        "rmod", "pow", "rpow", "neg", "pos", "abs",
    ):  # fmt: skip
        setattr(Unknown, f"__{name}__", kept(f"__{name}__"))
    return Unknown


PLACEHOLDER: Final = "?"


def formatted(spec: str) -> str:
    """The placeholder, padded to the width of the format."""
    width = "".join(each for each in spec.partition(".")[0] if each.isdigit())
    return PLACEHOLDER.rjust(int(width or 0))
