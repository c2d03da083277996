"""The benchmark for deadlines: traces are read strictly, and the references are what they claim to be."""

import json
import random
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path

import pytest
from bench.spot import main
from bench.spot_reference import SlackRule, UniformProgress, optimum
from bench.spot_runs import Setting, groups, read
from bench.spot_zones import zones
from tests.unit.run.worlds import cold_policy, on_demand, rows, spot, terms

from teraflock.run.model import NextPlace, RunPlace, RunState, RunTerms, Sight
from teraflock.run.simulate import Decides, replay

PLACES = [spot(changeover=0.5), on_demand(changeover=0.5)]


def write(folder: Path, name: str, data: Sequence[float], gap: float = 600) -> None:
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps({"metadata": {"gap_seconds": gap}, "data": data}))


def flaky(seed: int, ticks: int) -> list[int]:
    draw = random.Random(seed)
    series: list[int] = []
    while len(series) < ticks:
        series += [len(series) % 2] * int(1 + draw.expovariate(1 / draw.choice([2, 30])))
    return series[:ticks]


@pytest.mark.parametrize(
    ("deadline", "places"),
    [(3.5, PLACES), (3.3, PLACES), (3.3, [spot(changeover=0.75), on_demand(changeover=0.75)])],
    ids=["whole ticks", "the last tick is short", "longer than a tick to start"],
)
def test_the_optimum_is_the_best_of_all_sequences_of_actions(deadline: float, places: list[RunPlace]) -> None:
    job = terms(1.5, deadline, tick=0.5)
    for up in list(product((False, True), repeat=7))[3::9]:
        costs = [
            done.cost_micros
            for actions in product((None, 0, 1), repeat=7)
            if all(up[tick] or action != 0 for tick, action in enumerate(actions))
            and not (done := replay(job, places, rows(up, tick=0.5), 0, Fixed(actions))).late
        ]
        assert optimum(job, places, [up], 0) == pytest.approx(min(costs))


class Fixed:
    def __init__(self, actions: Sequence[int | None]) -> None:
        self._actions: Iterator[int | None] = iter(actions)

    def decide(self, state: RunState, sights: Sequence[Sight]) -> NextPlace:
        return NextPlace(next(self._actions), "fixed")


@pytest.mark.parametrize("seed", range(6))
def test_no_policy_beats_the_optimum_and_none_is_late(seed: int) -> None:
    job = terms(12, 15)
    series = [[bool(each) for each in flaky(10 * seed + zone, 90)] for zone in range(2)]
    places = [spot("a"), spot("b"), on_demand()]
    best = optimum(job, places, series, 0)
    rules: list[Decides] = [
        cold_policy(job, places),
        UniformProgress(job, places),
        SlackRule(job, places),
    ]
    for rule in rules:
        done = replay(job, places, rows(*series), 0, rule)
        assert not done.late
        assert done.cost_micros >= best - 1


def test_uniform_progress_keeps_the_line() -> None:
    """Without spot it waits and buys in turn, and ends in time."""
    job: RunTerms = terms(12, 15)
    places: list[RunPlace] = [spot(), on_demand()]
    done = replay(job, places, rows([False] * 90), 0, UniformProgress(job, places))
    assert not done.late
    assert done.spot_hours == 0
    assert done.starts > 1


def test_the_command_prints_costs_and_late_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for seed in range(3):
        write(tmp_path / "traces", f"zone-{seed}", flaky(seed, 600))
    words = [
        "--traces",
        str(tmp_path / "traces"),
        "--job",
        "10",
        "--deadline",
        "12",
        "14",
        "--changeover",
        "0.2",
    ]
    assert main([*words, "--json", str(tmp_path / "figures.json")]) == 0
    printed = capsys.readouterr().out
    assert "10 h of work, deadline 12 h, changeover 0.2 h, K 3.145: 21 runs" in printed
    assert "late: ours 0, uniform progress 0, slack rule 0" in printed
    assert "mean of 2 settings: 0 runs of ours late" in printed
    assert len(json.loads((tmp_path / "figures.json").read_text())) == 3
    assert main([*words, "--multi", "--optimum-every", "50"]) == 0
    assert "late: ours 0" in capsys.readouterr().out


def test_runs_learn_from_the_first_half_and_start_in_the_second(tmp_path: Path) -> None:
    write(tmp_path, "long", flaky(1, 600))
    write(tmp_path, "short", flaky(2, 90))
    setting = Setting(work_hours=10, deadline_hours=12, changeover_hours=0.2, k=3)
    long, short = groups(read(tmp_path), setting, multi=False)
    assert (long.learned, long.starts) == (300, range(300, 529, 36))
    assert (short.learned, short.starts) == (0, range(0, 19, 36)), "too short to learn from"


def test_what_is_too_short_is_named_and_folders_are_no_traces(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "zone.json", "long", flaky(1, 600))
    write(tmp_path / "zone.json", "short", flaky(2, 60))
    assert main(["--traces", str(tmp_path), "--job", "10", "--deadline", "12", "--every", "24"]) == 0
    assert "1 of 2 traces are shorter than the deadline: left out" in capsys.readouterr().out


def test_gangs_need_all_their_machines(tmp_path: Path) -> None:
    write(tmp_path, "counts", [0, 4.0, 16])
    [[four]] = read(tmp_path, nodes=4).values()
    assert four.up == (False, True, True)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "is not a trace"),
        ('{"data": [1]}', "is not a trace: Object missing required field `metadata`"),
        ('{"metadata": {"gap_seconds": 0}, "data": [1]}', "`gap_seconds` must be between 0 and 86400"),
        ('{"metadata": {"gap_seconds": 600}, "data": [1]}', "shorter than the deadline of 52 h"),
        ('{"metadata": {"gap_seconds": 600}, "data": []}', "shorter than the deadline of 52 h"),
    ],
)
def test_a_bad_trace_gets_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, words: str
) -> None:
    (tmp_path / "a.json").write_text(text)
    assert main(["--traces", str(tmp_path)]) == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    ["--k 0", "--deadline nan", "--job -1", "--every inf", "--optimum-every 0", "--nodes 0", "--job x"],
)
def test_numbers_out_of_range_are_refused(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_code:
        main(["--traces", "unused", *words.split()])
    assert exit_code.value.code == 2
    assert words.split()[0] in capsys.readouterr().err


def test_bad_options_get_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--traces", str(tmp_path / "none")]) == 2
    assert "There are no traces in" in capsys.readouterr().err
    write(tmp_path, "a", flaky(1, 600))
    assert main(["--traces", str(tmp_path), "--job", "60"]) == 2
    assert "on-demand alone needs 60.2 h" in capsys.readouterr().err


def test_zones_of_one_run_may_differ_in_tick_and_length(tmp_path: Path) -> None:
    """A rare series keeps its value until its next tick, and one that is shorter than a run is left out."""
    write(tmp_path, "a", [True, False] * 300)
    write(tmp_path, "b", [0, 2] * 500, gap=300)
    write(tmp_path, "short", [1] * 10)
    setting = Setting(work_hours=48, deadline_hours=52, changeover_hours=0.2, k=3.145)
    (zones,) = groups(read(tmp_path), setting, multi=True)
    slow, fast = zones.traces
    assert slow.up[:6] == (True, True, False, False, True, True)
    assert fast.up[:6] == (False, True) * 3
    assert len(slow.up) == 1200
    assert zones.starts.stop + 52 * 12 <= 1000 + 1


def test_synthetic_zones_are_the_same_for_the_same_seed_and_differ_in_availability(tmp_path: Path) -> None:
    assert main(["--traces", str(tmp_path / "a"), "--make", "3"]) == 0
    found = [json.loads(path.read_text())["data"] for path in sorted((tmp_path / "a").glob("*.json"))]
    assert next(zones(3)) == [bool(each) for each in found[0]]
    assert next(zones(4)) != next(zones(3))
    shares = [sum(series) / len(series) for series in found]
    assert len(shares) == 9
    assert min(shares) < 0.3 < 0.7 < max(shares)
    assert sum(map(any, zip(*found, strict=True))) > 0.98 * len(found[0])
