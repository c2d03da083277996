"""Fits what `estimate/` knows of the H200: `python -m recording.fit` writes estimate/data/h200.json.

It reads the files of `recording/measured/` named fit; those named judge are never opened. Needs numpy.
"""

import json
from pathlib import Path

import msgspec

from recording.evidence import host_runs, operations, row_runs, runs
from recording.fit_curves import fit_matrix, fit_workspace
from recording.fit_host import KINDS, PACES
from recording.fit_width import Fitted, fit_width

OUT = Path(__file__).parent.parent / "src/teraflock/estimate/data/h200.json"


def main() -> None:
    found, host = runs(), host_runs()
    ordinary = [*found, *row_runs()]
    rows = [row for run in found for row in operations(run)]
    matrix = fit_matrix(found)
    fitted = Fitted(rows, host, ordinary, matrix)
    costs = {kind: float(f"{value:.3g}") for kind, value in zip(KINDS, fitted.constants, strict=True)}
    usual = dict(zip(PACES, map(float, fitted.paces), strict=True))
    costs |= {kind: float(f"{usual[kind] / usual['train']:.3g}") for kind in ("context", "context_parameter")}
    print(costs, usual)
    paces, spread = fit_width(rows, host, ordinary, matrix)
    data = {
        "workspace": fit_workspace(row for row in rows if row.run.file == "fit"),
        "time": fitted.known.time,
        "points": {key: msgspec.json.decode(each) for key, each in fitted.known.points.items()},
        "serial": costs.pop("serial"),
        "host": costs,
        "matrix": matrix,
        "pace": {
            key: [
                round((usual[key.split("_")[1]] if "shared" in key else 1) * each, 3)
                for each in (low, 1, high)
            ]
            for key, (low, high) in paces.items()
        },
        "spread": spread,
    }
    OUT.write_text(json.dumps(data, sort_keys=True, separators=(",", ":")) + "\n")
    print(len(ordinary), "runs,", len(host), "of the host,", len(rows), "operations")


if __name__ == "__main__":
    main()
