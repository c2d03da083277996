"""Warn where the vCPUs of a machine may not decode images as fast as its GPUs train on them.

Pure. Estimates assume that data is always ready. For image models that is often untrue on machines with few vCPUs.
"""

from collections.abc import Callable, Sequence
from typing import Final

from teraflock.plan.model import Choice

IMAGES_PER_SECOND_PER_VCPU: Final = 100.0
"""Assumed: one vCPU reads, decodes and augments about 100 JPEG images of usual size per second."""
ASSUMED: Final = "the time assumes that reading and decoding the data does not limit the GPUs"


def pipeline_warning(choices: Sequence[Choice], samples: Callable[[Choice], float | None]) -> str:
    """Name the first choice that trains on more images per second than its vCPUs decode. Empty if there is none."""
    limited = [
        (rank, choice, trained, decoded)
        for rank, choice in enumerate(choices, start=1)
        if (trained := _images_per_second(choice, samples(choice)))
        and (decoded := _decoded_per_second(choice)) is not None
        and trained > decoded
    ]
    if not limited:
        return ""
    rank, choice, trained, decoded = limited[0]
    return (
        f"{len(limited)} of {len(choices)} choices may wait for their data: number {rank} trains on {trained:,.0f}"
        f" images per second, and its {choice.shape.vcpus:g} vCPUs decode about {decoded / choice.instances:,.0f}"
        f" (assumed: {IMAGES_PER_SECOND_PER_VCPU:g} JPEG images per second each)"
    )


def _images_per_second(choice: Choice, samples: float | None) -> float:
    seconds = choice.hours.p50 * 3600
    return samples / seconds if samples and 0 < seconds < float("inf") else 0.0


def _decoded_per_second(choice: Choice) -> float | None:
    vcpus = choice.shape.vcpus
    return None if not vcpus else vcpus * choice.instances * IMAGES_PER_SECOND_PER_VCPU
