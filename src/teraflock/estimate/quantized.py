"""The time that weights in 4 and 8 bits add to a step, as bitsandbytes handles them.

A product with 4-bit weights first unpacks them, which costs the host time in Python. A product with 8-bit weights reads
back whether its input has outliers, so host and GPU wait for each other. Both numbers were fitted on steps of
llama-3.2-1b and llama-3.2-3b on an H200 and judged by qwen2.5-0.5b and llama-3.1-8b (`python -m bench estimate`).
"""

from typing import Final

from teraflock.estimate.memory import Scene
from teraflock.workload.outliers import TO_INT8

UNPACK_SECONDS: Final = 160e-6
"""Host time to unpack the weights of one product."""
OUTLIER_SECONDS: Final = 0.78e-3
"""Waiting time of one product with 8-bit weights."""


def wait_seconds(scene: Scene) -> float:
    """Time in which host and GPU wait for each other."""
    if not any(each.name == TO_INT8 for each in scene.works):
        return 0.0
    return OUTLIER_SECONDS * sum(each.name == TO_INT8 for each in scene.step_works())
