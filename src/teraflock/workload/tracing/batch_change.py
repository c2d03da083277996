"""Runs a script with a larger batch than it asks for, without editing the script's file.

Three places can hold a script's batch: an argument, a data loader, or a number in its source, such as `batch_size = 64`
or `def get_batch(batch_size=32)`.
"""

import ast
import re
from typing import Any, Final

import msgspec

SIZES: Final = frozenset({"batch", "batchsize", "bs", "bsz"})
OTHERS: Final = frozenset(
    (
        "eval",
        "test",
        "val",
        "valid",
        "num",
        "nb",
        "n",
        "step",
        "steps",
        "accum",
        "accumulation",
        "first",
        "idx",
    )
)
"""Words in names that are not the size of a training batch."""


class BatchChange(msgspec.Struct, frozen=True, kw_only=True):
    """By what each place is multiplied."""

    argument: int = 1
    loader: int = 1
    source: int = 1


def ways(arguments: list[str], times: int) -> list[BatchChange]:
    """What to try, in order. An argument with the batch is certain; otherwise a loader is more likely than a name."""
    if with_larger_batch(arguments, times) != arguments:
        return [BatchChange(argument=times)]
    return [BatchChange(loader=times), BatchChange(source=times)]


def with_larger_batch(arguments: list[str], times: int) -> list[str]:
    found = list(arguments)
    for at, each in enumerate(arguments):
        name, equals, value = each.partition("=")
        if not equals and each.startswith("-") and at + 1 < len(arguments):
            value = arguments[at + 1]
        if value.isdecimal() and (_is_batch(name) or name == "-b"):
            larger = str(int(value) * times)
            found[at + (not equals)] = f"{name}={larger}" if equals else larger
    return found


def changed_code(text: str | bytes, path: str, times: int) -> Any:
    """The compiled source with larger batches. Lines keep their numbers."""
    tree = ast.parse(text, path)
    if times > 1:
        _Multiply(times).visit(tree)
    return compile(tree, path, "exec")


class _Multiply(ast.NodeTransformer):
    def __init__(self, times: int) -> None:
        self.times = times

    def visit_Assign(self, node: ast.Assign) -> Any:
        for target in node.targets:
            self._assign(target, node.value)
        return self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        self._assign(node.target, node.value)
        return self.generic_visit(node)

    def visit_arguments(self, node: ast.arguments) -> Any:
        plain = [*node.posonlyargs, *node.args]
        for name, default in zip(plain[len(plain) - len(node.defaults) :], node.defaults, strict=True):
            self._larger(name.arg, default)
        for name, optional in zip(node.kwonlyargs, node.kw_defaults, strict=True):
            self._larger(name.arg, optional)
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> Any:
        """`add_argument("--batch-size", default=64)` and `f(batch_size=64)`."""
        option = node.args[0].value if node.args and isinstance(node.args[0], ast.Constant) else ""
        for each in node.keywords:
            if each.arg == "default" and isinstance(option, str):
                self._larger(option, each.value)
            self._larger(each.arg or "", each.value)
        return self.generic_visit(node)

    def _assign(self, target: ast.expr, value: ast.expr | None) -> None:
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            for name, part in zip(target.elts, value.elts, strict=False):
                self._assign(name, part)
        elif isinstance(target, ast.Name | ast.Attribute):
            self._larger(target.id if isinstance(target, ast.Name) else target.attr, value)

    def _larger(self, name: str, value: ast.expr | None) -> None:
        if (
            isinstance(value, ast.Constant)
            and type(value.value) is int
            and value.value > 0
            and _is_batch(name)
        ):
            value.value *= self.times


def _is_batch(name: str) -> bool:
    words = set(re.split(r"[._-]+", name.lower()))
    return bool(words & SIZES) and not words & OTHERS
