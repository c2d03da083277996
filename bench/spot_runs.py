"""Read traces, and replay our policy, known policies and the optimum on them."""

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Final

import msgspec

from bench.processes import Fault
from bench.spot_reference import SlackRule, UniformProgress, optimum, week_scores
from teraflock.run.learn import Knowledge, learn, pooled
from teraflock.run.model import NextPlace, RunPlace, RunState, RunTerms, Sight, gang, sights_of
from teraflock.run.policy import SpotPolicy
from teraflock.run.simulate import Decides, Replay, aligned, replay
from teraflock.run.survival import Survival

SPOT_MICROS: Final = 1_000_000
HALF_LIFE_HOURS: Final = 168.0  # of several zones: they change, so a period of a week ago counts half
DAY_HOURS: Final = 24.0
POLICIES_MAX: Final = 6  # the days of a run; its tables take tens of megabytes
GAP_SECONDS_MAX: Final = 86_400
ALWAYS: Final = Sight(True, float("inf"))


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    work_hours: float
    deadline_hours: float
    changeover_hours: float
    k: float
    """Price of on-demand over the price of spot."""
    every_hours: float = 6.0
    optimum_every: int = 1
    history: bool = True


class Trace(msgspec.Struct, frozen=True):
    name: str
    tick_hours: float
    up: tuple[bool, ...]


class Zones(msgspec.Struct, frozen=True):
    """The zones of a run, and when runs start. On-demand is the last place."""

    traces: tuple[Trace, ...]
    starts: range
    learned: int
    """How many ticks at the beginning are for learning only. 0: nothing is learned."""

    @property
    def tick_hours(self) -> float:
        return self.traces[0].tick_hours


class Score(msgspec.Struct, frozen=True):
    percent: float
    """Mean cost over the cost of on-demand without a changeover."""
    late: int
    runs: int


class _Metadata(msgspec.Struct):
    gap_seconds: float


class _File(msgspec.Struct):
    metadata: _Metadata
    data: list[float | bool]


def read(folder: Path, nodes: int = 1) -> dict[Path, list[Trace]]:
    """Read all traces below a folder, by the folder they are in."""
    found: dict[Path, list[Trace]] = {}
    for path in sorted(each for each in folder.rglob("*.json") if not each.is_dir()):
        try:
            file = msgspec.json.decode(path.read_bytes(), type=_File)
        except (msgspec.MsgspecError, OSError) as error:
            raise Fault(f"{path} is not a trace: {error}") from error
        if not 0 < file.metadata.gap_seconds <= GAP_SECONDS_MAX:
            raise Fault(f"{path} is not a trace: `gap_seconds` must be between 0 and {GAP_SECONDS_MAX}")
        trace = Trace(path.stem, file.metadata.gap_seconds / 3600, gang(file.data, nodes))
        found.setdefault(path.parent, []).append(trace)
    if not found:
        raise Fault(
            f"There are no traces in {folder}: expected JSON files with `metadata.gap_seconds` and `data`"
        )
    return found


def groups(folders: dict[Path, list[Trace]], setting: Setting, *, multi: bool) -> list[Zones]:
    """Return the zones of the runs: single series, or all series of a folder together."""
    alone = [(trace,) for traces in folders.values() for trace in traces]
    together = [_on_one_tick(traces, setting) for traces in folders.values()]
    candidates = [each for each in (together if multi else alone) if each]
    found = [zones for each in candidates if (zones := _zones(each, setting)).starts]
    if not found:
        raise Fault(f"Every trace is shorter than the deadline of {setting.deadline_hours:g} h")
    return found


def _on_one_tick(traces: Sequence[Trace], setting: Setting) -> tuple[Trace, ...]:
    """Return the zones of one run, from a common start. Those shorter than a run are left out, and rarer ones keep
    their value until their next tick."""
    long = [each for each in traces if len(each.up) * each.tick_hours >= setting.deadline_hours]
    tick = min((each.tick_hours for each in long), default=0.0)
    return tuple(_resampled(each, tick) for each in long)


def _resampled(trace: Trace, tick: float) -> Trace:
    if trace.tick_hours == tick:
        return trace
    ticks = int(len(trace.up) * trace.tick_hours / tick + 1e-9)
    up = (
        trace.up[min(len(trace.up) - 1, int(each * tick / trace.tick_hours + 1e-9))] for each in range(ticks)
    )
    return Trace(trace.name, tick, tuple(up))


def _zones(traces: tuple[Trace, ...], setting: Setting) -> Zones:
    tick = traces[0].tick_hours
    ticks = min(len(trace.up) for trace in traces)
    last = ticks - int(setting.deadline_hours / tick + 1 - 1e-9)
    learned = ticks // 2 if setting.history and ticks // 2 <= last else 0
    return Zones(traces, range(learned, last + 1, max(1, round(setting.every_hours / tick))), learned)


def scores(found: Sequence[Zones], setting: Setting) -> dict[str, Score]:
    """Replay all policies on all starts."""
    learner = _Learner(found)
    runs: dict[str, list[Replay]] = {}
    best: list[float] = []
    for zones in found:
        places, terms = _places(zones, setting), _terms(zones, setting)
        sights = aligned([*(sights_of(trace.up, zones.tick_hours) for trace in zones.traces)])
        seen = [(*row, ALWAYS) for row in sights]
        up = [trace.up for trace in zones.traces]
        for position, start in enumerate(zones.starts):
            rules: dict[str, Decides] = {
                "ours": _Ours(learner, zones, start, terms, places),
                "uniform progress": UniformProgress(terms, places),
                "slack rule": SlackRule(terms, places),
            }
            for score, of in week_scores(up, zones.tick_hours, start).items() if len(up) > 1 else ():
                rules[f"uniform progress, zone by {score}"] = UniformProgress(terms, places, of)
            for name, rule in rules.items():
                runs.setdefault(name, []).append(replay(terms, places, seen, start, rule))
            if position % setting.optimum_every == 0:
                best.append(optimum(terms, places, up, start))
    whole = setting.work_hours * setting.k * SPOT_MICROS / 100
    return {
        name: Score(
            fmean(each.cost_micros for each in done) / whole, sum(each.late for each in done), len(done)
        )
        for name, done in runs.items()
    } | {_optimum_name(setting): Score(fmean(best) / whole, 0, len(best))}


def _optimum_name(setting: Setting) -> str:
    """Name the runs: the mean of some of them is not comparable with the mean of all."""
    return f"optimum of 1 run in {setting.optimum_every}" if setting.optimum_every > 1 else "optimum"


class _Ours:
    """Our policy for one run. With several zones it learns again every day, as the server does."""

    def __init__(
        self, learner: "_Learner", zones: Zones, start: int, terms: RunTerms, places: Sequence[RunPlace]
    ) -> None:
        self._learner, self._zones, self._start = learner, zones, start
        self._terms, self._places = terms, places

    def decide(self, state: RunState, sights: Sequence[Sight]) -> NextPlace:
        passed = (self._terms.deadline_hours - state.time_left_hours) / self._zones.tick_hours
        now = self._start + round(passed)
        return self._learner.policy(self._zones, now, self._terms, self._places).decide(state, sights)


class _Learner:
    """Builds policies from what a run may know, and keeps the newest few: tables are large."""

    def __init__(self, found: Sequence[Zones]) -> None:
        self._prior: tuple[Survival, Survival] | None = None
        if len({zones.tick_hours for zones in found}) == 1:
            halves = [trace.up[: zones.learned] for zones in found for trace in zones.traces]
            self._prior = pooled(halves, found[0].tick_hours)
        self._policies: dict[object, SpotPolicy] = {}

    def policy(self, zones: Zones, now: int, terms: RunTerms, places: Sequence[RunPlace]) -> SpotPolicy:
        """The policy of a run at a tick."""
        day = round(DAY_HOURS / zones.tick_hours)
        multi = len(zones.traces) > 1
        until = 0 if not zones.learned else now // day * day if multi else zones.learned
        known = (until, id(zones) if until else 0, zones.tick_hours, terms, len(places))
        if known not in self._policies:
            while len(self._policies) >= POLICIES_MAX:
                del self._policies[next(iter(self._policies))]
            self._policies[known] = SpotPolicy(terms, places, self._learned(zones, until, multi=multi))
        return self._policies[known]

    def _learned(self, zones: Zones, until: int, *, multi: bool) -> Knowledge:
        histories = [trace.up[:until] for trace in zones.traces]
        if not multi:
            return learn(histories, zones.tick_hours, prior=self._prior)
        return learn(histories, zones.tick_hours, half_life_hours=HALF_LIFE_HOURS)


def _terms(zones: Zones, setting: Setting) -> RunTerms:
    return RunTerms(
        work_hours=setting.work_hours, deadline_hours=setting.deadline_hours, tick_hours=zones.tick_hours
    )


def _places(zones: Zones, setting: Setting) -> list[RunPlace]:
    spots = [
        RunPlace(
            name=trace.name,
            mode="spot",
            price_micros_per_hour=SPOT_MICROS,
            changeover_hours=setting.changeover_hours,
        )
        for trace in zones.traces
    ]
    on_demand = RunPlace(
        name="on-demand",
        mode="on-demand",
        price_micros_per_hour=round(setting.k * SPOT_MICROS),
        changeover_hours=setting.changeover_hours,
    )
    return [*spots, on_demand]
