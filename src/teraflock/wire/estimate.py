"""An estimate as JSON, for `tera estimate --json` and `POST /v1/estimates`."""

from typing import Any

import msgspec

from teraflock.estimate.model import Estimate
from teraflock.estimate.words import EstimateWords


class EstimateRequest(EstimateWords, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An estimate request. Fields have the names of the options of `tera estimate`. `model` must be a name, not a
    file."""


def shape_estimate(estimate: Estimate) -> dict[str, Any]:
    """Return the stable JSON fields; new ones may be added. Without an amount of work, hours are omitted."""
    shape: dict[str, Any] = msgspec.to_builtins(estimate)
    for row in (*shape["gpus"], shape["cpu"] or {"hours": 0}):
        if row["hours"] is None:
            del row["hours"]
    return shape
