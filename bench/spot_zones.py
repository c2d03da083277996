"""Synthetic spot zones, to judge the policy on what it was not fitted to.

Nine zones of three regions, 45 days in ticks of 195 s. They resemble the public traces of 2023: the median available
period lasts half an hour and the mean about three hours, zones are available for 15 to 85 % of the time, and some zone
for 99 %. Periods alternate, with log-normal lengths. How long the available ones are differs between zones, of which
the worst are in the first region, and drifts over days, in part for a whole region. Every 30 h on average, a region
loses most of its zones at once.
"""

import json
from collections.abc import Iterator
from math import exp, sqrt
from pathlib import Path
from random import Random
from typing import Final

REGIONS: Final = (0, 0, 0, 0, 1, 1, 2, 2, 2)
GAP_SECONDS: Final = 195
TICKS: Final = 20_160
HOUR_TICKS: Final = 3600 / GAP_SECONDS
MEDIAN_HOURS: Final = 0.6  # of periods, in a zone that is available half of the time
SPREAD: Final = 1.9  # of the logarithm of lengths
DRIFT: Final = 0.6
DRIFT_HOURS: Final = 72.0
DRIFT_SHARED: Final = 0.5
OUTAGE_EVERY_HOURS: Final = 30.0
OUTAGE_SHARE: Final = 0.8  # of the zones of a region


def write_zones(folder: Path, seed: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for number, series in enumerate(zones(seed)):
        text = json.dumps({"metadata": {"gap_seconds": GAP_SECONDS}, "data": list(map(int, series))})
        (folder / f"zone-{number}.json").write_text(text, encoding="utf-8")


def zones(seed: int) -> Iterator[list[bool]]:
    draw = Random(seed)
    shared = [_drift(draw) for _ in set(REGIONS)]
    outages = [
        [tick for tick in range(TICKS) if draw.random() < 1 / HOUR_TICKS / OUTAGE_EVERY_HOURS] for _ in shared
    ]
    shares = [0.17 + 0.77 * position / (len(REGIONS) - 1) for position in range(len(REGIONS))]
    for region, share in zip(REGIONS, shares, strict=True):
        own = _drift(draw)
        drift = [
            exp(DRIFT * (sqrt(DRIFT_SHARED) * both + sqrt(1 - DRIFT_SHARED) * alone))
            for both, alone in zip(shared[region], own, strict=True)
        ]
        hit = {tick for tick in outages[region] if draw.random() < OUTAGE_SHARE}
        yield _series(draw, share / (1 - share), drift, hit)


def _series(draw: Random, ratio: float, drift: list[float], outages: set[int]) -> list[bool]:
    series: list[bool] = []
    up = draw.random() < ratio / (1 + ratio)
    while len(series) < TICKS:
        scale = ratio * drift[len(series)] if up else 1 / drift[len(series)]
        hours = MEDIAN_HOURS * scale * exp(draw.gauss(0, SPREAD))
        for _ in range(max(1, round(hours * HOUR_TICKS))):
            if len(series) == TICKS or (up and len(series) in outages and series and series[-1]):
                break
            series.append(up)
        up = not up
    return series


def _drift(draw: Random) -> list[float]:
    """A random walk that returns to 0, with a spread of 1."""
    keep = exp(-1 / HOUR_TICKS / DRIFT_HOURS)
    found = [draw.gauss(0, 1)]
    for _ in range(TICKS - 1):
        found.append(keep * found[-1] + sqrt(1 - keep * keep) * draw.gauss(0, 1))
    return found
