"""Cases of a walk or a property that are shared out between `make test` and `make test-long`."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest


def sampled(
    cases: Iterable[Any], *, every: int, because: str, id: Callable[[Any], str] | None = None
) -> list[Any]:
    """All cases, for `parametrize`: one of `every` so many is fast, the others are long."""
    made = []
    for number, case in enumerate(cases):
        marks = () if number % every == 0 else (pytest.mark.long(because),)
        values = case if isinstance(case, tuple) else (case,)
        made.append(pytest.param(*values, marks=marks, id=id(case) if id else None))
    return made


def counted(fast: int, long: int, *, because: str) -> list[Any]:
    """How many examples to try, for `parametrize`: few in the fast part, many in the long one."""
    return [fast, pytest.param(long, marks=pytest.mark.long(because))]
