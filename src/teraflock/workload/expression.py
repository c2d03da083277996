"""Sizes as expressions of a trace's symbols: batch, sequence, image size.

An expression is an integer, the name of a symbol, or `[operator, operand, …]`. It is data, not code: anyone can write a
trace, so Python never evaluates any of it.
"""

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, Final

from teraflock.base.errors import BadInput

Expression = int | str | list[Any]

NESTING_MAX: Final = 64  # deeper than any shape arithmetic; limits the recursion for a hostile file
POWER_MAX: Final = 8


def evaluate_all(expressions: Sequence[Expression], symbols: Mapping[str, int]) -> list[int]:
    """The value of every expression of a trace, in order, for these symbols."""
    return [each if type(each) is int else evaluate(each, symbols) for each in expressions]


def evaluate(expression: object, symbols: Mapping[str, int], _depth: int = 0) -> int:
    if type(expression) is int:
        return expression
    if type(expression) is str:
        if expression not in symbols:
            raise BadInput(f"The trace has no symbol `{expression}`")
        return symbols[expression]
    if type(expression) is not list or not expression or _depth > NESTING_MAX:
        raise BadInput("The trace has an invalid size")
    operands = [evaluate(each, symbols, _depth + 1) for each in expression[1:]]
    return _applied(expression[0], operands)


def folded_all(expressions: Sequence[Expression], symbols: Mapping[str, int]) -> list[Expression]:
    """The expressions with the values of some symbols filled in, which makes repeated evaluation fast."""
    return [each if type(each) is int else _folded(each, symbols) for each in expressions]


def _folded(expression: object, symbols: Mapping[str, int], depth: int = 0) -> Expression:
    if type(expression) is int:
        return expression
    if type(expression) is str:
        return symbols.get(expression, expression)
    if type(expression) is not list or not expression or depth > NESTING_MAX:
        raise BadInput("The trace has an invalid size")
    operator, *rest = expression
    operands = [_folded(each, symbols, depth + 1) for each in rest]
    known = [each for each in operands if type(each) is int]
    if len(known) == len(operands):
        return _applied(operator, known)
    if operator in ("*", "+") and len(known) > 1:
        operands = [*(each for each in operands if type(each) is not int), _applied(operator, known)]
    return [operator, *operands]


def _applied(operator: object, operands: list[int]) -> int:
    if operator == "*":
        return prod(operands)
    if operator == "+":
        return sum(operands)
    if operator == "max" and operands:
        return max(operands)
    if operator == "min" and operands:
        return min(operands)
    if len(operands) == 2:
        left, right = operands
        if operator == "//" and right:
            return left // right
        if operator == "%" and right:
            return left % right
        if operator == "**" and 0 <= right <= POWER_MAX:
            return int(left**right)
    raise BadInput("The trace has an invalid size")
