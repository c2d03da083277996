"""Fits decoding: `python -m lab.fit_serving` prints the constants of `estimate/serving.py` and their errors.

Reads measured/serve.csv. Half of the models are fitted on, the others judged by. Needs numpy.
"""

import csv
from math import log2
from pathlib import Path

import numpy as np

from teraflock.estimate import serving
from teraflock.estimate.speed import PEAKS_H200, floor_seconds
from teraflock.workload.model import Workload

ROWS = Path("lab/measured/serve.csv")
FITTED = ("llama-3.2-1b", "llama-3.1-8b", "qwen2.5-7b", "mistral-nemo-12b")


def main() -> None:
    rows = list(csv.DictReader(ROWS.open()))
    parts, seconds, prefill = [], [], []
    for row in rows:
        load = serving.Load(users=int(row["users"]), context=int(row["context"]))
        known = serving._Known(Workload(model=row["model"], batch=1, precision="bf16"), load)
        kernels = len(known.works)
        products = sum(floor_seconds(w, PEAKS_H200, tf32=False) for w in known.works if w.family == "matmul")
        cache = load.users * known.kv_bytes_per_user / PEAKS_H200.bandwidth
        parts.append([products, kernels * 1e-6, kernels * 1e-6 * log2(load.users), cache])
        seconds.append(float(row["token_ms"]) / 1e3)
        if row["prefill_ms"]:
            prefill.append(known.prefill.seconds(PEAKS_H200) * 1e3 / float(row["prefill_ms"]) - 1)
    left, right = np.array(parts), np.array(seconds)
    fitted = np.array([row["model"] in FITTED for row in rows])
    found, *_ = np.linalg.lstsq(left[fitted] / right[fitted, None], np.ones(fitted.sum()), rcond=None)
    print("products, kernel (µs), doubling (µs), cache:", np.round(found, 3))
    for name, mask in (("fitted", fitted), ("judged", ~fitted)):
        off = np.abs(left[mask] @ found / right[mask] - 1)
        print(f"{name}: median {np.median(off):.1%}, 90th percentile {np.quantile(off, 0.9):.1%}")
    print(f"prefill: median {np.median(np.abs(prefill)):.1%}, bias {np.median(prefill):+.1%}")


if __name__ == "__main__":
    main()
