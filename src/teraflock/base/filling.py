"""Values that repeat fields of another value, such as an answer of the API that shows a host."""

from typing import Any, TypeVar

import msgspec

Filled = TypeVar("Filled", bound=msgspec.Struct)


def filled(kind: type[Filled], source: object, /, **others: Any) -> Filled:
    """A `kind` with `others`; its remaining fields are those of `source` with the same names.

    A field that neither has is an error, also if the field has a default: it was renamed on one side only.
    """
    same = {name: getattr(source, name) for name in kind.__struct_fields__ if name not in others}
    return kind(**same, **others)
