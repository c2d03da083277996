"""The error for a plan without choices."""

from collections.abc import Iterable
from typing import Final

from teraflock.base.errors import TeraflockError
from teraflock.plan.model import Plan, Rejection, reason_text

NO_ADVICE: Final = frozenset({"over_budget", "too_slow", "never_ends"})
"""With these reasons the job fits, so advice on memory would mislead."""
NEAR_MISSES: Final = (
    "over_budget", "too_slow", "does_not_fit", "precision", "memory_total_too_small", "memory_too_small",
    "too_few_gpus",
)  # fmt: skip
"""Reasons by how near they are, nearest first. The sizes of misses compare only within one reason."""


class NoPlan(TeraflockError):
    """No offer satisfies the request."""

    code = "no_plan"
    exit_code = 3
    remedy = "Relax a limit, such as `--deadline` or `--budget`. `--why` lists every offer with the reason."


def no_plan(plan: Plan, advice: list[str], hints: Iterable[str] = ()) -> NoPlan:
    """Report the most frequent reasons, the nearest miss, and what would make the job fit."""
    counts = [(code, count) for code, count in plan.counts().items() if code != "no_gpu"]
    most = ", ".join(f"{reason_text(code)}: {count:,}" for code, count in counts[:3])
    hint = "`--why` lists the reason for every offer"
    if best := _nearest(plan):
        what = f"{best.shape.gpu_count}× {best.shape.gpu} at {best.shape.provider}"
        hint = f"The nearest miss is {what}: {best.reason}. {hint}"
    hint = ". ".join([hint, *hints])
    if advice and not any(rejection.code in NO_ADVICE for rejection in plan.rejected):
        hint += "\n      To make it fit, try one of these:\n        " + "\n        ".join(advice)
    return NoPlan(f"No offer meets the request ({most or 'no offers are stored'})", hint=hint)


def _nearest(plan: Plan) -> Rejection | None:
    """Return the smallest miss among the rejections that passed the most checks."""
    for code in NEAR_MISSES:
        if near := [rejection for rejection in plan.rejected if rejection.code == code]:
            return min(near, key=lambda rejection: rejection.by)
    return None
