"""Converts a job of `lab/measure.py`, or a row of a table of measured steps, to a workload."""

from collections.abc import Mapping
from typing import Any

from teraflock.workload.model import Workload


def workload_of(job: Mapping[str, Any]) -> Workload:
    """Numbers may be text, as in a table."""
    return Workload(
        model=job["model"],
        task=job["task"],
        batch=int(job["batch"]),
        seq=int(job["seq"]) if job.get("seq") else None,
        image_size=int(job["px"]) if job.get("px") else None,
        precision=job["precision"],
        optimizer=job["optimizer"] or "sgd",
        gradient_checkpointing=bool(job["ckpt"]),
        lora_rank=int(job["lora"]) or None,
        compile=bool(job.get("compile")),
    )
