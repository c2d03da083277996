"""Adds operations that the zoo does not use to the curves of the H200: `python -m lab.fit_foreign`, after `lab.fit`.

It reads the operations of measured scripts. Operations with a curve of their own get points where the zoo has none
nearby, so that estimates of the zoo stay as they are. The others get curves. Needs numpy.
"""

import json
from collections import defaultdict
from typing import Any

import numpy as np

from lab.evidence import MEASURED, Run, operations
from lab.fit import OUT
from lab.fit_curves import POINTS_MIN, Placed, curve_of, placed, points_near
from lab.rows import read_lines
from teraflock.estimate.speed import REACH, STREAMS

FILES = ("fit_foreign", "fit_scripts", "fit_sweep", "fit_scripts_more", "fit_sweep_more")
PRECISIONS = {
    name: precision
    for precision, names in {
        "amp-fp16": "fp16_accumulate cifar_wide deeplab_amp mae roberta_fp16 lightning_manual gpt2_scaler",
        "amp-bf16": "ddpm trainer_bert accelerate_t5 bert_mlm ddp_alone conformer electra",
        "bf16": "vit_bf16 qwen_sft llama_own",
        "fp16": "swin_serve",
        "tf32": "gpt2_tf32",
    }.items()
    for name in names.split()
}
"""Of the measured scripts; the others use fp32."""
SKIPPED_MICROSECONDS = 20_000
"""Longer operations waited for the host."""
APART = 1.4
"""A new point is so many times as far from all points of the zoo as these reach, so that it does not change estimates of
operations between them."""
# Those on single numbers have no curves of their own: a few sizes bend a curve between them, and all take as long as
# the multiplication.


def _rows() -> list[Placed]:
    found = []
    for file in FILES:
        for row in read_lines(MEASURED / f"{file}.jsonl.gz"):
            precision = row["job"].get("precision") or PRECISIONS.get(row["job"]["model"], "fp32")
            job = {**row["job"], "precision": precision}
            ops = [each for each in row.get("ops", []) if not _is_over_rows(*each[:2])]
            run = Run(file, {"median": 0.0, **row, "ops": ops, "job": job}, None)  # type: ignore[arg-type]  # no scene: only operations
            found += [
                each
                for each in operations(run)
                if each.microseconds < SKIPPED_MICROSECONDS and each.view.name not in STREAMS
            ]
    return placed(found)


def _is_over_rows(name: str, given: str) -> bool:
    """Whether this is a softmax over the first side: another kernel, which its sizes do not tell from the usual one."""
    return "softmax" in name and "0" in given.split()


def _new_points(known: list[list[float]], found: list[list[float]]) -> list[list[float]]:
    """Those that are far from all points of the zoo."""
    spots = np.array([each[:-1] for each in known])
    return [
        each
        for each in found
        if not len(spots) or float(np.min(np.sum((spots - each[:-1]) ** 2, axis=1))) > (APART * REACH) ** 2
    ]


def add(data: dict[str, Any], rows: list[Placed]) -> None:
    own: dict[str, list[Placed]] = defaultdict(list)
    wide: dict[str, list[Placed]] = defaultdict(list)
    for each in rows:
        own[each.keys[0]].append(each)
        if each.keys[-1] == "bytes":
            wide[each.keys[-2]].append(each)
    time, points = data["time"], data["points"]
    for key, found in sorted(wide.items()):
        if key not in time and len(found) >= POINTS_MIN:
            time[key], time[key + "|range"] = curve_of(found)
    for key, found in sorted(own.items()):
        if key not in time and len(found) >= POINTS_MIN:
            time[key], time[key + "|range"] = curve_of(found)
        if key in time:
            near = points_near(time[key], time[key + "|range"], found)
            known = points.get(key, [])
            points[key] = sorted([*known, *_new_points(known, near)])


def main() -> None:
    data = json.loads(OUT.read_text())
    before = len(data["time"]), sum(len(each) for each in data["points"].values())
    add(data, _rows())
    OUT.write_text(json.dumps(data, sort_keys=True, separators=(",", ":")) + "\n")
    after = len(data["time"]), sum(len(each) for each in data["points"].values())
    print("curves and points before and after:", before, after)


if __name__ == "__main__":
    main()
