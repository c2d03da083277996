"""What to say where no offer does what was asked for."""

from typing import Final

from teraflock.base.errors import TeraflockError
from teraflock.plan.model import Plan, Rejection


class NoPlan(TeraflockError):
    """No offer satisfies the request."""

    code = "no_plan"
    exit_code = 3
    remedy = "Relax a limit, such as `--deadline` or `--budget`. `--why` lists every offer with the reason."


def no_plan(plan: Plan, advice: list[str], network: str = "") -> NoPlan:
    """Say what stood in the way most, how near the nearest came, and what would make the job fit."""
    counts = [(code, count) for code, count in plan.counts().items() if code != "no_gpu"]
    most = ", ".join(f"{count:,} {code.replace('_', ' ')}" for code, count in counts[:3])
    hint = "`--why` lists every offer with its reason"
    if best := _nearest(plan):
        what = f"{best.shape.gpu_count}× {best.shape.gpu} at {best.shape.provider}"
        hint = f"The nearest is {what}: {best.reason}. {hint}"
    if network:
        hint += f". {network}"
    if advice and not any(rejection.code in ("over_budget", "too_slow") for rejection in plan.rejected):
        hint += "\n      What would help: " + "\n      ".join(advice)
    return NoPlan(f"No offer does what is asked ({most or 'none is stored'})", hint=hint)


def _nearest(plan: Plan) -> Rejection | None:
    """Of those that got furthest, the one that missed by least."""
    for code in NEAR_MISSES:
        if near := [rejection for rejection in plan.rejected if rejection.code == code]:
            return min(near, key=lambda rejection: rejection.by)
    return None


NEAR_MISSES: Final = (
    "over_budget", "too_slow", "does_not_fit", "memory_total_too_small", "memory_too_small", "too_few_gpus",
)  # fmt: skip
"""From what would do but for its price to what is too small; misses of one kind alone can be compared."""
