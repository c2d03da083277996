"""Beside gpuhunt: the same generated rows in its own files, read by each, and the same questions asked of both.

The main figure is for equal work: every offer that fits, as an object, the cheapest first. What both find is compared
price by price; where they differ, the comparison is worth nothing and is a fault.
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
QUERIES: Final = 25  # in each round; ours are asked more often, being short

TASKS: Final = "bench.offer_tasks"
SCRIPT: Final = Path(__file__).parent / "peers" / "gpuhunt_query.py"


def beside_gpuhunt(folder: Path) -> Section:
    if not PEERS.exists():
        return Section(
            title="beside gpuhunt",
            notes=(f"left out: there is no {PEERS.parts[-3]}; what `make bench` said before this tells why",),
        )
    files = folder / "files"
    files.mkdir(parents=True)
    run_task(TASKS, "write", files, str(ROWS))
    ours, theirs = [], []
    for number in range(ROUNDS):
        ours.append(run_task(TASKS, "beside", files, env=at_home(folder / str(number))))
        theirs.append(json.loads(run([PEERS, SCRIPT, files, str(QUERIES)]).stdout))
    _check_alike(ours[0], theirs[0])
    matched = len(ours[0]["prices"])
    return Section(
        title=f"beside gpuhunt {theirs[0]['version']}, {ROWS:,} generated rows, every A100, cheapest first:"
        f" {matched:,} fit",
        figures=(
            Figure(what="gpuhunt is slower by, equal work", unit="×",
                   samples=_ratios(theirs, "seconds", ours, "all_seconds"), bar=20, at_least=True),
            Figure(what="gpuhunt is slower by, we give the first 50", unit="×",
                   samples=_ratios(theirs, "seconds", ours, "first_seconds"), bar=20, at_least=True),
            Figure(what=f"gpuhunt is slower by, all of each of {ours[0]['cards']} cards in turn", unit="×",
                   samples=_ratios(theirs, "turn_seconds", ours, "turn_seconds")),
            Figure(what="gpuhunt, all that fit", unit="ms", samples=_pooled(theirs, "seconds")),
            Figure(what="ours, all that fit", unit="ms", samples=_pooled(ours, "all_seconds")),
            Figure(what="ours, the first 50", unit="ms", samples=_pooled(ours, "first_seconds")),
            Figure(what="gpuhunt, a card in turn", unit="ms", samples=_pooled(theirs, "turn_seconds")),
            Figure(what="ours, a card in turn", unit="ms", samples=_pooled(ours, "turn_seconds")),
        ),
        notes=(
            "the same files read by each; numbers and prices of what fits are the same in both",
            f"the ratio is of medians, in each of {ROUNDS} rounds",
        ),
    )  # fmt: skip


def _check_alike(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    if not ours["offers"] == theirs["offers"] == ROWS:
        raise Fault(f"of {ROWS:,} rows we took {ours['offers']:,} and gpuhunt {theirs['offers']:,}")
    if not ours["found_in_turn"] == theirs["found_in_turn"] == ROWS:
        raise Fault(
            f"card by card we found {ours['found_in_turn']:,} and gpuhunt {theirs['found_in_turn']:,}"
        )
    if ours["prices"] != theirs["prices"]:
        raise Fault(
            f"we and gpuhunt do not find the same: {len(ours['prices']):,} and {len(theirs['prices']):,} offers, the"
            f" cheapest {min(ours['prices'], default=None)} and {min(theirs['prices'], default=None)}"
        )


def _ratios(
    theirs: Sequence[dict[str, Any]], of_theirs: str, ours: Sequence[dict[str, Any]], of_ours: str
) -> tuple[float, ...]:
    pairs = zip(theirs, ours, strict=True)
    return tuple(median(their[of_theirs]) / median(our[of_ours]) for their, our in pairs)


def _pooled(rounds: Sequence[dict[str, Any]], name: str) -> tuple[float, ...]:
    return tuple(value for each in rounds for value in milliseconds(each[name]))
