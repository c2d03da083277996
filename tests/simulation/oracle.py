"""Computes what everything must cost from observation: each instance at every commit, and when its tenant
made requests.

It reads no event, interval or charge. It knows only what an observer sees: the phase of a row, its
reservations, when someone asked for a change, when its host last answered; and the rules of docs/bill.md.
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import pairwise

import msgspec

DAY_US = 86_400 * 10**6
MONTH_US = 730 * 3600 * 10**6
GB = 1 << 30
BASIS = 10_000
PER_CNY = Fraction(7_250_000, 1_000_000)
RUNS = ("running", "changing")
OVER = ("deleting", "gone", "failed")
PARTS = ("gpu", "vcpu", "ram", "disk", "snapshot")
BY_GB = ("ram", "disk", "snapshot")


class Held(msgspec.Struct, frozen=True):
    gpu: str
    gpus: int
    vcpus: int
    ram_bytes: int
    disk_bytes: int
    snapshots_bytes: int
    mode: str
    host: str
    region: str
    labels: str

    @property
    def amounts(self) -> tuple[int, ...]:
        return (self.gpus, self.vcpus, self.ram_bytes, self.disk_bytes, self.snapshots_bytes)


class Stretch(msgspec.Struct, kw_only=True):
    """A holding from one time to another."""

    held: Held
    from_us: int
    until_us: int | None = None
    run_us: int | None = None
    run: int = 0
    short_us: int | None = None
    """The length of the run, if it ended here; None if it did not end, or ended through our fault."""


class Sent(msgspec.Struct, frozen=True, kw_only=True):
    """Traffic since the previous reading of a counter."""

    held: Held
    sent_bytes: int
    at_us: int


class Life(msgspec.Struct, kw_only=True):
    project: str
    phase: str = ""
    wanted: str = "running"
    since_us: int = 0
    asked_us: int | None = None
    """When the tenant asked to end the current state."""
    runs: int = 0
    stretches: list[Stretch] = []
    held: Held | None = None
    sent: list[Sent] = []

    @property
    def open(self) -> Stretch | None:
        last = self.stretches[-1] if self.stretches else None
        return last if last and last.until_us is None else None


class Price(msgspec.Struct, kw_only=True):
    from_us: int
    units: dict[str, int]
    """Micro-units per month: of a card by the beginning of its name, `vcpu`, `ram`, `disk`, `snapshot`;
    `egress` per GB. With a region and a slash as prefix, the price in that region."""
    minimum_us: int
    long_term: tuple[tuple[int, int], ...]

    def unit(self, part: str, gpu: str, mode: str, project: str, region: str) -> int:
        name = gpu.partition("-")[0] if part == "gpu" else part
        micros = self.units.get(f"{region}/{name}", self.units.get(name, 0))
        off = {"spot": 60, "monthly": 30}.get(mode, 0) if part != "egress" else 0
        if mode == "spot" and part in ("disk", "snapshot"):
            off = 0
        if off:
            micros = round(Fraction(micros * (100 - off), 100))
        return round(micros * PER_CNY) if project == "cny" else micros


class Cover(msgspec.Struct, kw_only=True):
    from_us: int
    until_us: int
    held: tuple[str, int, int, int, int]


class Oracle:
    def __init__(self) -> None:
        self.lives: dict[str, Life] = {}
        self.prices: list[Price] = []
        self.covers: dict[str, list[Cover]] = {}

    # -- watching ----------------------------------------------------------------------------------------------

    def see(
        self, id: str, project: str, phase: str, wanted: str, held: Held, now_us: int, lost_us: int | None, *,
        is_told: bool, limit_us: int | None = None,
    ) -> None:  # fmt: skip
        """Record a row after a commit. Of several requests to end, the first counts until it is done.

        An instance that ran past its time limit, `limit_us`, counts as asked to end then. `is_told` is
        whether this change has an event: nothing before the last such change counts.
        """
        life = self.lives.setdefault(id, Life(project=project, stretches=[], sent=[]))
        life.held = held
        if wanted == "running":
            life.asked_us = None
        elif wanted != life.wanted and life.asked_us is None:
            ran = life.wanted == "running"
            life.asked_us = min(now_us, limit_us) if ran and limit_us is not None else now_us
        life.wanted = wanted
        if is_told or phase != life.phase:
            self.change(id, phase, held, now_us, lost_us)
        if phase == wanted == "stopped":
            life.asked_us = None

    def change(self, id: str, phase: str, held: Held, now_us: int, lost_us: int | None) -> None:
        life = self.lives[id]
        runs, opened = phase in RUNS, life.open
        charged = held if runs else _kept(held) if phase == "stopped" else None
        at_us = max(now_us, life.since_us)
        if opened and charged == opened.held and runs == (opened.run_us is not None):
            life.phase, life.since_us = phase, at_us
            return
        if opened and not runs:
            times = [us for us in (life.asked_us, lost_us) if us is not None]
            began_us = opened.from_us if opened.run_us is None else opened.run_us
            at_us = max(began_us, min([at_us, *times]))
        elif life.phase in OVER and phase in OVER:
            at_us = life.since_us
        if opened:
            self._end(
                life, opened, at_us, goes_on=runs and opened.run_us is not None, lost=lost_us is not None
            )
        if charged:
            self._begin(life, opened, charged, at_us, runs)
        life.phase, life.since_us = phase, at_us

    def _end(self, life: Life, opened: Stretch, at_us: int, *, goes_on: bool, lost: bool) -> None:
        if goes_on or opened.run_us is None:
            opened.until_us = at_us
            return
        last = None
        for each in life.stretches:
            if each.run == opened.run:
                each.until_us = max(each.from_us, min(at_us, each.until_us or at_us))
                last = each if each.from_us < at_us or each.from_us == each.run_us else last
        if last and not lost and at_us > opened.run_us:
            last.short_us = at_us - opened.run_us

    def _begin(self, life: Life, before: Stretch | None, held: Held, at_us: int, runs: bool) -> None:
        run_us, run = None, 0
        if runs and before and before.run_us is not None:
            run_us, run = before.run_us, before.run
        elif runs:
            life.runs += 1
            run_us, run = at_us, life.runs
        life.stretches.append(Stretch(held=held, from_us=at_us, run_us=run_us, run=run))

    # -- what it costs -----------------------------------------------------------------------------------------

    def gpu_us(self, id: str, now_us: int) -> int:
        return sum(
            each.held.gpus * max(0, (now_us if each.until_us is None else each.until_us) - each.from_us)
            for each in self.lives[id].stretches
        )

    def cost(self, id: str, now_us: int, from_us: int = 0, until_us: int = 1 << 62) -> int:
        """Return the cost between two times to the micro-unit, rounded down once per part from the beginning
        of each stretch."""
        life, total = self.lives[id], 0
        for each in life.stretches:
            end_us = now_us if each.until_us is None else each.until_us
            total += self._up_to(id, life, each, min(end_us, until_us)) - self._up_to(
                id, life, each, min(end_us, from_us)
            )
            if each.short_us is not None and from_us <= max(each.from_us, end_us - 1) < until_us:
                total += self.lacking(id, each)
        return total + self._traffic(life, from_us, until_us)

    def traffic_since(self, id: str, from_us: int) -> int:
        """Return an upper bound: the traffic read since then, plus a micro-unit per reading for rounding."""
        life = self.lives[id]
        return sum(
            each.sent_bytes * self._egress(life, each) // GB + 1
            for each in life.sent
            if each.at_us >= from_us
        )

    def _traffic(self, life: Life, from_us: int, until_us: int) -> int:
        """Return the traffic cost between two times, rounded down once per day, price and sender."""
        lines: dict[tuple[object, ...], list[int]] = {}
        for each in life.sent:
            day_us = each.at_us - each.at_us % DAY_US
            begins_us = max([day_us, *(p.from_us for p in self.prices if p.from_us <= each.at_us)])
            if from_us <= begins_us < until_us:
                held = each.held
                key = (begins_us, held.gpu, held.mode, held.host, held.region, held.labels)
                line = lines.setdefault(key, [0, self._egress(life, each)])
                line[0] += each.sent_bytes
        return sum(sent * unit // GB for sent, unit in lines.values())

    def _egress(self, life: Life, each: Sent) -> int:
        price = self.price(each.at_us)
        return price.unit("egress", "", each.held.mode, life.project, each.held.region) if price else 0

    def rate(self, project: str, now_us: int) -> Fraction:
        """Return the micro-units per microsecond of everything held now."""
        found = Fraction(0)
        for id, life in self.lives.items():
            price = self.price(now_us)
            if life.project == project and (now := life.open) and price:
                for _, weight, scale in self._weights(id, life, now, price, now_us):
                    found += Fraction(weight, scale)
        return found

    def committed(self, id: str, now_us: int) -> int:
        """Return what a current run will cost beyond its time if it stops now."""
        now = self.lives[id].open
        if now is None or now.run_us is None or now_us <= now.run_us:
            return 0
        return self.lacking(id, msgspec.structs.replace(now, short_us=now_us - now.run_us))

    def price(self, us: int) -> Price | None:
        found = [price for price in self.prices if price.from_us <= us]
        return found[-1] if found else None

    def _up_to(self, id: str, life: Life, each: Stretch, until_us: int) -> int:
        if until_us <= each.from_us:
            return 0
        exact: dict[str, Fraction] = dict.fromkeys(PARTS, Fraction(0))
        for a, b in self._pieces(id, each, until_us):
            price = self.price(a)
            if price:
                for part, weight, scale in self._weights(id, life, each, price, a):
                    exact[part] += Fraction(weight * (b - a), scale)
        return sum(int(amount) for amount in exact.values())

    def _weights(
        self, id: str, life: Life, each: Stretch, price: Price, us: int
    ) -> Iterator[tuple[str, int, int]]:
        off = 0
        if each.run_us is not None and each.held.mode == "on-demand":
            off = max((bp for days, bp in price.long_term if us >= each.run_us + days * DAY_US), default=0)
        for part, amount in zip(PARTS, self._beyond(id, each.held, us), strict=True):
            unit = price.unit(part, each.held.gpu, each.held.mode, life.project, each.held.region)
            yield (
                part,
                unit * amount * (BASIS - off),
                MONTH_US * BASIS * (GB if part in BY_GB else 1),
            )

    def _beyond(self, id: str, held: Held, us: int) -> Sequence[int]:
        paid = next((each for each in self.covers.get(id, []) if each.from_us <= us < each.until_us), None)
        if paid is None:
            return held.amounts
        gpu, *covered = paid.held
        covered[0] = covered[0] if gpu == held.gpu else 0
        return [max(0, amount - less) for amount, less in zip(held.amounts, [*covered, 0], strict=True)]

    def _pieces(self, id: str, each: Stretch, until_us: int) -> Iterator[tuple[int, int]]:
        cuts = {price.from_us for price in self.prices}
        cuts |= {us for cover in self.covers.get(id, []) for us in (cover.from_us, cover.until_us)}
        if each.run_us is not None:
            cuts |= {each.run_us + days * DAY_US for price in self.prices for days, _ in price.long_term}
        edges = [each.from_us, *sorted(us for us in cuts if each.from_us < us < until_us), until_us]
        return pairwise(edges)

    def lacking(self, id: str, each: Stretch) -> int:
        """Return what a run that was too short costs beyond its time."""
        life = self.lives[id]
        assert each.run_us is not None
        assert each.short_us is not None
        price = self.price(each.run_us)
        if price is None or (lacking_us := price.minimum_us - each.short_us) <= 0:
            return 0
        amounts = self._beyond(id, each.held, each.run_us)
        return sum(
            price.unit(part, each.held.gpu, each.held.mode, life.project, each.held.region) * amount * lacking_us
            // (MONTH_US * (GB if part == "ram" else 1))
            for part, amount in zip(PARTS[:3], amounts, strict=False)
        )  # fmt: skip


def _kept(held: Held) -> Held:
    return msgspec.structs.replace(held, gpu="", gpus=0, vcpus=0, ram_bytes=0)
