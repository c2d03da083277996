"""The adapters of `judge_quantized` and `judge_later`: both of their matrices were drawn, where peft begins with zeros.

They add to the factors of a gated MLP, so more columns of their product have an outlier, which bitsandbytes keeps.
"""

from typing import Any, Final

from teraflock.workload.config import shape_named
from teraflock.workload.outliers import share_of_columns

ADDED: Final = 4 / 9
"""Variance for an input of one: each matrix is drawn evenly with a variance of a third over its inputs, and the result
counts twice."""


def more_outliers_bytes(case: dict[str, Any]) -> int:
    """What was kept beyond the estimate, which is for peft's adapters."""
    if case["load_in"] != "8bit":
        return 0
    shape, tokens = shape_named(case["model"]), case["batch"] * case["seq"]
    hidden, inner = shape.widths["hidden"], shape.widths["inter"]
    more = share_of_columns(hidden, tokens, ADDED) - share_of_columns(hidden, tokens)
    return round(more * shape.layers[0] * inner * tokens * 2)
