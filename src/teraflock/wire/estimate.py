"""An estimate as `tera estimate --json` and `POST /v1/estimates` have it."""

from typing import Any

import msgspec

from teraflock.estimate.model import Estimate
from teraflock.estimate.words import EstimateWords


class EstimateRequest(EstimateWords, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What `tera estimate` asks, by the names of its options. A model is named; the server reads no files."""


def shape_estimate(estimate: Estimate) -> dict[str, Any]:
    """The JSON that is promised; further fields may join, these stay. Without an amount of work there are no hours."""
    shape: dict[str, Any] = msgspec.to_builtins(estimate)
    for row in shape["gpus"]:
        if row["hours"] is None:
            del row["hours"]
    return shape
