"""Sweeps: one run for each combination of values, with one budget over all. Pure."""

import re
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Final

from teraflock.base.errors import BadInput

RUNS_MAX: Final = 100
COMMAND_CHARACTERS_MAX: Final = 100_000


def combinations(grid: Mapping[str, Sequence[str]]) -> list[dict[str, str]]:
    """All combinations of the values of a grid. The last parameter changes fastest."""
    for name, values in grid.items():
        if not values or len(set(values)) < len(values):
            raise BadInput(f"`{name}` needs one or more different values", hint="For example `lr=1e-3,1e-4`")
    count = 1
    for values in grid.values():
        count *= len(values)
    if not grid or count > RUNS_MAX:
        raise BadInput(
            f"A sweep has 1 to {RUNS_MAX} runs, not {count if grid else 0}", hint="Use fewer values"
        )
    return [dict(zip(grid, each, strict=True)) for each in product(*grid.values())]


def command_with(command: Sequence[str], values: Mapping[str, str]) -> tuple[str, ...]:
    """The command of one run: `{lr}` becomes the value of `lr`; a parameter without a mark is added as `--lr VALUE`.

    A mark in a value stays as it is: values that name each other would make a short request as large as the memory.
    """
    marks = re.compile("|".join(re.escape(f"{{{name}}}") for name in values))
    words, marked, size = list[str](), set[str](), 0
    for word in command:
        marked |= {found[1:-1] for found in marks.findall(word)}
        words.append(marks.sub(lambda found: values[found[0][1:-1]], word))
        size += len(words[-1])
        if size > COMMAND_CHARACTERS_MAX:
            raise BadInput(
                f"The command of a run in a sweep can have {COMMAND_CHARACTERS_MAX:,} characters",
                hint="Put long arguments into a file that the command reads",
            )
    return (*words, *(part for name in values if name not in marked for part in (f"--{name}", values[name])))
