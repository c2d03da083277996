"""Compare with gpuhunt: both read the same generated files and answer the same queries.

The main figure is for equal work: every matching offer as an object, cheapest first. The prices of both results are
compared, and a difference is an error, because it would make the comparison meaningless.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any, Final

from bench.figures import Figure, Section, milliseconds
from bench.processes import PEERS, Fault, at_home, run, run_task

ROWS: Final = 50_000
ROUNDS: Final = 3
QUERIES: Final = 25  # per round; ours run more often, because they are short

TASKS: Final = "bench.offer_tasks"
SCRIPT: Final = Path(__file__).parent / "peers" / "gpuhunt_query.py"


def compared_with_gpuhunt(folder: Path) -> Section:
    if not PEERS.exists():
        return Section(
            title="compared with gpuhunt",
            notes=(f"not measured: {PEERS.parts[-3]} is missing; see the output of `make bench` above",),
        )
    files = folder / "files"
    files.mkdir(parents=True)
    run_task(TASKS, "write", files, str(ROWS))
    ours, theirs = [], []
    for number in range(ROUNDS):
        ours.append(run_task(TASKS, "compare", files, env=at_home(folder / str(number))))
        theirs.append(json.loads(run([PEERS, SCRIPT, files, str(QUERIES)]).stdout))
    _check_equal(ours[0], theirs[0])
    matched = len(ours[0]["prices"])
    return Section(
        title=f"compared with gpuhunt {theirs[0]['version']}, {ROWS:,} generated rows, every A100, cheapest first:"
        f" {matched:,} match",
        figures=(
            Figure(what="gpuhunt time relative to ours, equal work", unit="×",
                   samples=_ratios(theirs, "seconds", ours, "all_seconds"), bar=20, at_least=True),
            Figure(what="gpuhunt time relative to ours, our first 50", unit="×",
                   samples=_ratios(theirs, "seconds", ours, "first_seconds"), bar=20, at_least=True),
            Figure(what=f"gpuhunt time relative to ours, all offers of {ours[0]['cards']} cards in turn", unit="×",
                   samples=_ratios(theirs, "turn_seconds", ours, "turn_seconds")),
            Figure(what="gpuhunt, all matches", unit="ms", samples=_pooled(theirs, "seconds")),
            Figure(what="ours, all matches", unit="ms", samples=_pooled(ours, "all_seconds")),
            Figure(what="ours, the first 50", unit="ms", samples=_pooled(ours, "first_seconds")),
            Figure(what="gpuhunt, one of many cards", unit="ms", samples=_pooled(theirs, "turn_seconds")),
            Figure(what="ours, one of many cards", unit="ms", samples=_pooled(ours, "turn_seconds")),
        ),
        notes=(
            "Both read the same files. The number and prices of the matches are equal.",
            f"Ratios are of medians, for each of {ROUNDS} rounds.",
        ),
    )  # fmt: skip


def _check_equal(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    if not ours["offers"] == theirs["offers"] == ROWS:
        raise Fault(f"of {ROWS:,} rows we read {ours['offers']:,} and gpuhunt {theirs['offers']:,}")
    if not ours["found_in_turn"] == theirs["found_in_turn"] == ROWS:
        raise Fault(
            f"card by card we found {ours['found_in_turn']:,} and gpuhunt {theirs['found_in_turn']:,}"
        )
    if ours["prices"] != theirs["prices"]:
        raise Fault(
            f"our results differ from gpuhunt's: {len(ours['prices']):,} and {len(theirs['prices']):,} offers, the"
            f" cheapest {min(ours['prices'], default=None)} and {min(theirs['prices'], default=None)}"
        )


def _ratios(
    theirs: Sequence[dict[str, Any]], of_theirs: str, ours: Sequence[dict[str, Any]], of_ours: str
) -> tuple[float, ...]:
    pairs = zip(theirs, ours, strict=True)
    return tuple(median(their[of_theirs]) / median(our[of_ours]) for their, our in pairs)


def _pooled(rounds: Sequence[dict[str, Any]], name: str) -> tuple[float, ...]:
    return tuple(value for each in rounds for value in milliseconds(each[name]))
