"""Measured steps as a table: the columns of `truth/h200.csv`, `image_size` where it is not the model's own, and how
quick the host was (`lab/probe.py`).

Plain Python: it is read on machines that have PyTorch and nothing of ours.
"""

import csv
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

COLUMNS = (
    "model", "task", "batch", "seq", "precision", "optimizer", "gradient_checkpointing", "lora_rank", "parameters",
    "trainable_parameters", "live_peak_bytes", "reserved_peak_bytes", "device_used_bytes", "step_seconds_median",
    "step_seconds_min", "gpu", "torch", "image_size", "probe_microseconds",
)  # fmt: skip


def append_row(path: Path, found: dict[str, Any], *, gpu: str, torch: str) -> None:
    """One more line, with the head where the file is new; whole on disk when this returns."""
    job = found["job"]
    row = {
        **{each: job[each] for each in ("model", "task", "batch", "precision", "optimizer")},
        "seq": job["seq"] or "",
        "gradient_checkpointing": job["ckpt"],
        "lora_rank": job["lora"] or "",
        "parameters": found["parameters"],
        "trainable_parameters": found["trainable"],
        "live_peak_bytes": found["live"],
        "reserved_peak_bytes": found["reserved"],
        "device_used_bytes": found["device"],
        "step_seconds_median": f"{found['median']:.6f}",
        "step_seconds_min": f"{found['min']:.6f}",
        "gpu": gpu,
        "torch": torch,
        "image_size": job["px"] or "",
        "probe_microseconds": f"{found['probe']:.0f}",
    }
    is_new = not path.exists()
    with path.open("a", newline="") as lines:
        writer = csv.DictWriter(lines, COLUMNS, lineterminator="\n")
        if is_new:
            writer.writeheader()
        writer.writerow(row)


def append_line(path: Path, found: dict[str, Any]) -> None:
    """The same as a line of JSON."""
    with path.open("a") as lines:
        lines.write(json.dumps(found, separators=(",", ":")) + "\n")


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Such lines, compressed."""
    with gzip.open(path, "rt") as lines:
        yield from map(json.loads, lines)


def read_rows(path: Path) -> Iterator[dict[str, str]]:
    with path.open(newline="") as lines:
        yield from csv.DictReader(lines)


def as_job(row: dict[str, str]) -> dict[str, Any]:
    """The job that a row was measured by."""
    return {
        "model": row["model"],
        "task": row["task"],
        "batch": int(row["batch"]),
        "seq": int(row["seq"]) if row["seq"] else None,
        "precision": row["precision"],
        "optimizer": row["optimizer"],
        "ckpt": int(row["gradient_checkpointing"]),
        "lora": int(row["lora_rank"] or 0),
        "px": int(row.get("image_size") or 0) or None,
    }
