"""Fits what `estimate/` knows of the H200: `python -m lab.fit` writes estimate/data/h200.json.

It reads the files of `lab/measured/` named fit; those named judge are never opened. Needs numpy.
"""

import json
from pathlib import Path

import msgspec

from lab.evidence import host_runs, operations, row_runs, runs
from lab.fit_curves import fit_matrix, fit_workspace, placed
from lab.fit_host import KINDS, PACES, Replay
from lab.fit_width import fit_width
from lab.held_out import Evidence, Fitted

OUT = Path(__file__).parent.parent / "src/teraflock/estimate/data/h200.json"


def main() -> None:
    found, host = runs(), host_runs()
    ordinary = [*found, *row_runs()]
    rows = [row for run in found for row in operations(run)]
    matrix = fit_matrix(found)
    evidence = Evidence(placed(rows), host, ordinary, matrix)
    known = evidence.known()
    fitted = Fitted(known, [Replay(run, known) for run in host], [Replay(run, known) for run in ordinary])
    costs = {kind: float(f"{value:.3g}") for kind, value in zip(KINDS, fitted.constants, strict=True)}
    usual = dict(zip(PACES, map(float, fitted.paces), strict=True))
    costs |= {kind: float(f"{usual[kind] / usual['train']:.3g}") for kind in ("context", "context_parameter")}
    print(costs, usual)
    widths = fit_width(evidence, fitted)
    print(widths.spread, widths.models)
    data = {
        "workspace": fit_workspace(row for row in rows if row.run.file == "fit"),
        "time": known.time,
        "points": {key: msgspec.json.decode(each) for key, each in known.points.items()},
        "serial": costs.pop("serial"),
        "host": costs,
        "matrix": matrix,
        **widths._asdict(),
    }
    OUT.write_text(json.dumps(data, sort_keys=True, separators=(",", ":")) + "\n")
    kept = sum(len(each) for each in data["points"].values())
    distinct = len({(each.keys[0], each.spot) for each in evidence.rows})
    print(
        len(ordinary),
        "runs,",
        len(host),
        "of the host;",
        kept,
        "operations kept of",
        distinct,
        "distinct ones",
    )


if __name__ == "__main__":
    main()
