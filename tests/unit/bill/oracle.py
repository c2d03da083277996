"""What everything must cost, found the slow and plain way: by looking at every tick of every instance.

A tick is the least step of the simulated clock. For each tick an instance has lived through, the oracle notes what it
held; what turns out never to have been held is struck out. Costs are exact fractions; only the books round.
"""

from fractions import Fraction
from typing import Any

import msgspec

TICK_US = 300 * 10**6
DAY_US = 86_400 * 10**6
MONTH_US = 730 * 3600 * 10**6
GB = 1 << 30
PER_CNY = Fraction(7_250_000, 1_000_000)


class Life(msgspec.Struct, kw_only=True):
    project: str
    phase: str = ""
    held: dict[str, Any] | None = None
    """What is charged at present."""
    since_us: int = 0
    """When the last change took effect."""
    run_us: int | None = None
    open_us: int = 0
    ticks: dict[int, tuple[dict[str, Any], int | None]] = {}
    short: Fraction = Fraction(0)
    """What runs that were too short cost beyond their time."""
    cuts: int = 0
    """How often a floor may have been taken."""
    sent: list[tuple[int, int, str]] = []
    """When it was read how much left the house, from which region."""


class Oracle:
    def __init__(self) -> None:
        self.lives: dict[str, Life] = {}
        self.prices: list[tuple[int, dict[str, Any]]] = []
        self.covers: dict[str, list[tuple[int, int, dict[str, Any]]]] = {}

    def pass_time(self, from_us: int, until_us: int) -> None:
        for life in self.lives.values():
            if life.held is not None:
                for us in range(max(from_us, life.since_us, life.open_us), until_us, TICK_US):
                    life.ticks[us] = (life.held, life.run_us)

    def change(
        self,
        id: str,
        project: str,
        phase: str,
        held: dict[str, Any],
        now_us: int,
        asked_us: int | None,
        lost_us: int | None,
    ) -> None:
        life = self.lives.setdefault(id, Life(project=project))
        runs = phase in ("running", "changing")
        charged = held if runs else _kept(held) if phase == "stopped" else None
        at_us = max(now_us, life.since_us)
        if life.held is not None and charged == life.held and runs == (life.run_us is not None):
            life.since_us, life.phase = at_us, phase
            self.pass_time(at_us, now_us)
            return
        if life.held is not None and not runs:
            asked = phase == "deleting" or (phase == "stopping" and life.run_us is not None)
            back = [asked_us] if asked_us is not None and asked else []
            back += [lost_us] if lost_us is not None else []
            at_us = max(min([at_us, *back]), life.open_us if life.run_us is None else life.run_us)
        if life.held is not None:
            life.cuts += 1
            if life.run_us is not None and not runs and lost_us is None:
                life.short += self._lacking(id, life, at_us)
        life.ticks = {us: what for us, what in life.ticks.items() if us < at_us}
        begun_us = life.run_us if runs and life.run_us is not None else at_us if runs else None
        life.held, life.phase, life.since_us, life.run_us, life.open_us = (
            charged,
            phase,
            at_us,
            begun_us,
            at_us,
        )

    def gpu_us(self, id: str) -> int:
        return sum(held["gpus"] * TICK_US for held, _ in self.lives[id].ticks.values())

    def cost(self, id: str) -> Fraction:
        life = self.lives[id]
        return (
            self._traffic(life)
            + life.short
            + sum(
                (
                    self._rate(id, life.project, us, held, run_us) * TICK_US
                    for us, (held, run_us) in life.ticks.items()
                ),
                Fraction(0),
            )
        )

    def _traffic(self, life: Life) -> Fraction:
        whole = Fraction(0)
        for us, count, region in life.sent:
            price = self.price(us)
            if price is not None:
                unit = _at(price, region)["egress"]
                whole += Fraction(count * _in_mode(unit, "", life.project), GB)
        return whole

    def price(self, us: int) -> dict[str, Any] | None:
        """The newest book that counts at a time."""
        found = [price for from_us, price in self.prices if from_us <= us]
        return found[-1] if found else None

    def _lacking(self, id: str, life: Life, end_us: int) -> Fraction:
        assert life.run_us is not None
        assert life.held is not None
        price = self.price(life.run_us)
        lacking = 0 if price is None else price["minimum"] * 10**6 - (end_us - life.run_us)
        if lacking <= 0 or end_us == life.run_us:
            return Fraction(0)
        run_only = {**_held_at(life, end_us), "disk_bytes": 0, "snapshots_bytes": 0}
        return self._rate(id, life.project, life.run_us, run_only, None) * lacking

    def _rate(self, id: str, project: str, us: int, held: dict[str, Any], run_us: int | None) -> Fraction:
        """Micro-units a microsecond."""
        price = self.price(us)
        if price is None:
            return Fraction(0)
        paid = next((shape for a, b, shape in self.covers.get(id, []) if a <= us < b), None)
        beyond = dict(held)
        if paid:
            for name in ("vcpus", "ram_bytes", "disk_bytes"):
                beyond[name] = max(0, held[name] - paid[name])
            if paid["gpu"] == held["gpu"]:
                beyond["gpus"] = max(0, held["gpus"] - paid["gpus"])
        price = _at(price, held["region"])
        timed = ("vcpu", "ram", "disk", "snapshot")
        kept = ("disk", "snapshot")  # never on spot
        units = {name: _in_mode(price[name], "" if name in kept else held["mode"], project) for name in timed}
        gpu = _in_mode(price["gpu"].get(held["gpu"], 0), held["mode"], project)
        off = 0
        if run_us is not None and held["mode"] == "on-demand":
            off = max((bp for days, bp in price["long_term"] if us >= run_us + days * DAY_US), default=0)
        whole = gpu * beyond["gpus"] + units["vcpu"] * beyond["vcpus"]
        by_gb = units["ram"] * beyond["ram_bytes"] + units["disk"] * beyond["disk_bytes"]
        by_gb += units["snapshot"] * beyond["snapshots_bytes"]
        return Fraction(whole + Fraction(by_gb, GB)) * Fraction(10_000 - off, 10_000) / MONTH_US


def _kept(held: dict[str, Any]) -> dict[str, Any]:
    return {**held, "gpu": "", "gpus": 0, "vcpus": 0, "ram_bytes": 0}


def _held_at(life: Life, end_us: int) -> dict[str, Any]:
    """What a run held last before its end."""
    before = [us for us, (_, run_us) in life.ticks.items() if us < end_us and run_us == life.run_us]
    return life.ticks[max(before)][0] if before else life.held or {}


def _at(price: dict[str, Any], region: str) -> dict[str, Any]:
    """Prices as they are in a region: its own count before the house's."""
    own = price["regions"].get(region, {})
    return {**price, **own, "gpu": {**price["gpu"], **own.get("gpu", {})}}


def _in_mode(micros: int, mode: str, project: str) -> int:
    """Spot is 60 per cent off; one project pays in another currency. Rounded once each, half to even."""
    if mode == "spot":
        micros = round(Fraction(micros * 40, 100))
    return round(micros * PER_CNY) if project == "prj_cny" else micros
