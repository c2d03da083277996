"""Sizes of tensors as expressions of a trace."""

from typing import Any

import torch

from teraflock.workload.expression import Expression


def expression_of(value: Any) -> Expression:
    """A Python integer or symbolic integer of PyTorch as an expression."""
    if isinstance(value, int) and not isinstance(value, torch.SymInt):
        return value
    return _from_sympy(value.node.expr)


def _from_sympy(expr: Any) -> Expression:
    import sympy

    if isinstance(expr, (int, sympy.Integer)):
        return int(expr)
    if isinstance(expr, sympy.Symbol):
        return str(expr)
    kind = type(expr).__name__
    if kind in ("CeilToInt", "FloorToInt", "TruncToInt") and type(expr.args[0]).__name__ == "IntTrueDiv":
        whole, part = (_from_sympy(each) for each in expr.args[0].args)
        return ["//", ["+", whole, part, -1] if kind == "CeilToInt" else whole, part]
    operands = [_from_sympy(each) for each in expr.args]
    operator = {
        "Add": "+", "Mul": "*", "Pow": "**", "PowByNatural": "**", "FloorDiv": "//", "CleanDiv": "//",
        "Mod": "%", "PythonMod": "%", "Max": "max", "Min": "min",
    }.get(kind)  # fmt: skip
    if operator is None:
        raise ValueError(f"a size has the form {kind}, which a trace cannot store: {expr}")
    return [operator, *operands]
