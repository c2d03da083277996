"""The sizes of a model in the terms of its family, and how the fields of a Hugging Face config are read and checked.

Fields that a config leaves out have the defaults of transformers. A config that needs operations that were not recorded
is refused, because a trace of another model would be worse than none.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from teraflock.base.errors import BadInput

HEAD_STEP: Final = 8
HEAD_MAX: Final = 128
"""For wider heads, attention uses another kernel than the recorded one."""
WIDE_HEAD_MAX: Final = 256
"""For families that were recorded with heads wider than `HEAD_MAX`."""
WIDTH_MAX: Final = 1 << 24
VALUE_MAX: Final = 80
"""Characters of a value that an error repeats."""
LAYERS_MAX: Final = 1024
TRACE_HINT: Final = "Record a script with it instead: `tera trace train.py -o job.trace`"
TEXT, IMAGE = "text", "image"


class ModelShape(msgspec.Struct, frozen=True, kw_only=True):
    """The sizes of a model in the terms of its family."""

    family: str
    layers: tuple[int, ...]
    """Of each stack: an encoder before a decoder, and CLIP's image encoder before its text encoder."""
    widths: dict[str, int]
    kind: str = TEXT
    positions: int = 0
    kv_elements_per_token: int = 0
    """Keys and values that a cache holds for each token."""
    kv_elements_fixed: int = 0
    """Keys and values of the encoder's output for each sample, independent of its length."""
    image: int = 0
    window: int = 0
    """Tokens that a token attends to at most. The recorded steps have full attention. 0: no limit."""
    notes: tuple[str, ...] = ()
    """What the config says and the recorded model does not have."""


class Fields:
    """Reads and checks the fields of one config."""

    def __init__(self, data: Mapping[str, Any], name: str) -> None:
        self.data, self.name = data, name

    def with_defaults(self, defaults: Mapping[str, object]) -> "Fields":
        """Fields that are missing or null have these values."""
        given = {name: value for name, value in self.data.items() if value is not None}
        return Fields({**self.data, **defaults, **given}, self.name)

    def size(self, field: str, default: int | None = None, most: int = WIDTH_MAX) -> int:
        value = self.data.get(field)
        if value is None:
            value = default
        if value is None:
            raise BadInput(f"`{self.name}` is incomplete: it has no `{field}`")
        if type(value) is not int or not 1 <= value <= most:
            raise BadInput(f"`{self.name}`: `{field}` is not a number from 1 to {most:,}")
        return value

    def layers(self, field: str, default: int | None = None) -> int:
        return self.size(field, default, LAYERS_MAX)

    def is_on(self, field: str, *, default: bool = False) -> bool:
        value = self.data.get(field)
        if value is not None and not isinstance(value, bool):
            raise BadInput(f"`{self.name}`: `{field}` is neither true nor false")
        return default if value is None else value

    def number(self, field: str, default: float) -> float:
        value = self.data.get(field)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < WIDTH_MAX:
            raise BadInput(f"`{self.name}`: `{field}` is not a number")
        return value

    def inner(self, field: str) -> "Fields":
        value = self.data.get(field)
        return Fields(value if isinstance(value, dict) else {}, f"{self.name}, {field}")

    def refuse(self, field: str, *, unless: object) -> None:
        """Refuse other values than the one that was recorded, or than several in a tuple."""
        value = self.data.get(field)
        if value is not None and value not in (unless if isinstance(unless, tuple) else (unless,)):
            words = str(value)[:VALUE_MAX]
            raise BadInput(f"`{self.name}`: `{field}` of {words} is not supported", hint=TRACE_HINT)

    def drops(self, *fields: str, recorded: bool, default: float = 0.0) -> tuple[str, ...]:
        """A note if the config differs from the recorded model in whether it has dropout."""
        other = [each for each in fields if (self.number(each, default) > 0) != recorded]
        if not other:
            return ()
        return (
            f"the config has {'no ' * recorded}dropout (`{other[0]}`), and the estimate is for a model"
            f" with{'out' * (not recorded)} it: training needs somewhat {'less' if recorded else 'more'} memory",
        )

    def head(self, size: int, most: int = HEAD_MAX) -> int:
        if size % HEAD_STEP or size > most:
            raise BadInput(
                f"`{self.name}`: heads with {size} elements are not supported",
                hint=f"Multiples of {HEAD_STEP} up to {most} are supported. {TRACE_HINT}",
            )
        return size

    def share(self, hidden: int, heads: int, most: int = HEAD_MAX) -> int:
        """The width of a head if heads divide the hidden state."""
        if hidden % heads:
            raise BadInput(f"`{self.name}`: {heads} heads cannot divide {hidden} elements evenly")
        return self.head(hidden // heads, most)
