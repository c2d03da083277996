"""Measures scripts of tests/corpus as they are: `python -m lab.measure_compiled JOBS OUT --worker lab.measure_foreign`.

A job names a script, what ends its step and how often: an optimizer's step by default, otherwise a function such as
`torch.topk`. The script runs unchanged, except that data is free: a data loader repeats its first batches, and large
random tensors in host memory are made once. After some steps it waits for its turn, then runs ten steps with a
synchronisation after each and ten without. `live` is the peak of the whole run, `launch` what the host takes for a
small operation. With `"record": 1`, four more steps follow: one for the kernels, one for the host's calls, one for the
time and memory of every operation, one for the allocations. With `"record": 2` only the first two. Needs what the
scripts import.
"""

import importlib
import itertools
import os
import runpy
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

from lab.measure import Operations
from lab.measure_compiled import kernel_rows, recorded_allocations, wait_for_turn
from lab.probe import probe

SCRIPTS = Path(__file__).parents[1] / "tests" / "corpus" / "scripts"
WARM, TIMED = 6, 10
BATCHES = 4
LARGE = 50_000
"""Random tensors with more numbers than this are made once."""


class Finished(BaseException):
    """Ends the script. Not an `Exception`, so that `except Exception` does not catch it."""


class Watch:
    def __init__(self, job: dict[str, Any], gate: Path) -> None:
        self.job, self.gate = job, gate
        self.count = 0
        self.seconds: list[float] = []
        self.probes: list[float] = []
        self.launches: list[float] = []
        self.freely = 0.0
        self.peaks = (0, 0)
        self.more: dict[str, Any] = {}
        self._before = 0.0
        self._recorder: Any = None

    def ended(self, *_: Any) -> None:
        self.count += 1
        if self.count % self.job.get("ends", 1):
            return
        done = self.count // self.job.get("ends", 1) - WARM
        if done < 0:
            return
        if done == 0:
            torch.cuda.synchronize()
            wait_for_turn(self.gate)
        elif done <= TIMED:
            torch.cuda.synchronize()
            self.seconds.append(time.perf_counter() - self._before)
        elif done == 2 * TIMED:
            torch.cuda.synchronize()
            self.freely = (time.perf_counter() - self._before) / TIMED
            self.peaks = torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved()
        if done >= 2 * TIMED:
            self._record(done - 2 * TIMED)
        if done < TIMED:
            self.probes.append(probe())
            self.launches.append(launch_microseconds())
            torch.cuda.synchronize()
        if done <= TIMED:
            self._before = time.perf_counter()

    def _record(self, turn: int) -> None:
        """Steps after the timed ones: each turn ends what the turn before began."""
        torch.cuda.synchronize()
        if turn in (1, 2):
            self._recorder.__exit__(None, None, None)
            self.more |= {"kernels": kernel_rows(self._recorder)} if turn == 1 else host_rows(self._recorder)
        elif turn == 3:
            self._recorder.__exit__(None, None, None)
            self.more["ops"] = self._recorder.rows()
        elif turn == 4:
            self.more["events"] = recorded_allocations()
        if turn == TURNS[self.job.get("record", 0)]:
            raise Finished
        if turn == 3:
            torch.cuda.memory._record_memory_history(max_entries=1_000_000, context=None)
            return
        activity = torch.profiler.ProfilerActivity
        activities = [activity.CPU if turn else activity.CUDA]
        self._recorder = Operations() if turn == 2 else torch.profiler.profile(activities=activities)
        self._recorder.__enter__()


TURNS = (0, 4, 2)
LAUNCHES = 50


def launch_microseconds() -> float:
    """What the host takes for one small operation."""
    with torch.no_grad():
        x = torch.ones(16, device="cuda")
        start = time.perf_counter()
        for _ in range(LAUNCHES):
            x.add_(1)
    return 1e6 * (time.perf_counter() - start) / LAUNCHES


def host_rows(profile: Any) -> dict[str, Any]:
    """Name, count, microseconds alone and with what it calls, of the calls that take the host longest."""
    found = profile.key_averages()
    rows = [
        [each.key[:90], each.count, round(each.self_cpu_time_total, 1), round(each.cpu_time_total, 1)]
        for each in found
    ]
    rows.sort(key=lambda row: -row[2])
    return {"host": rows[:80], "host_calls": [sum(row[1] for row in rows), sum(row[2] for row in rows)]}


def _counted(real: Callable[..., Any], watch: Watch) -> Callable[..., Any]:
    def counted(*args: Any, **kwargs: Any) -> Any:
        watch.ended()
        return real(*args, **kwargs)

    return counted


def _once(real: Callable[..., Any]) -> Callable[..., Any]:
    made: dict[str, Any] = {}

    def once(*args: Any, **kwargs: Any) -> Any:
        if kwargs.get("device") is not None or "generator" in kwargs:
            return real(*args, **kwargs)
        key = repr((args, kwargs))
        if key in made:
            return made[key]
        found = real(*args, **kwargs)
        if found.numel() > LARGE and found.device.type == "cpu":
            made[key] = found
        return found

    return once


def _free_data() -> None:
    from torch.utils.data import DataLoader

    def repeated(self: Any) -> Iterator[Any]:
        self.__dict__["num_workers"] = 0
        self.__dict__["persistent_workers"] = False
        self.__dict__["prefetch_factor"] = None
        kept = self.__dict__.setdefault("kept_batches", list(itertools.islice(real(self), BATCHES)))
        return itertools.islice(itertools.cycle(kept), len(self))

    real = DataLoader.__iter__
    DataLoader.__iter__ = repeated  # type: ignore[method-assign,assignment]
    for name in ("randn", "rand", "randint"):
        setattr(torch, name, _once(getattr(torch, name)))


def measure(job: dict[str, Any], gate: Path) -> dict[str, Any]:
    warnings.simplefilter("ignore")
    watch = Watch(job, gate)
    _free_data()
    if "marker" in job:
        place, _, name = job["marker"].rpartition(".")
        try:
            holder: Any = importlib.import_module(place)
        except ModuleNotFoundError:
            module, _, kind = place.rpartition(".")
            holder = getattr(importlib.import_module(module), kind)
        setattr(holder, name, _counted(getattr(holder, name), watch))
    else:
        register_optimizer_step_post_hook(watch.ended)
    script = SCRIPTS / f"{job['model']}.py"
    os.chdir(tempfile.mkdtemp())
    with Path(os.devnull).open("w") as nothing:
        out, sys.stdout, sys.argv = sys.stdout, nothing, [str(script)]
        try:
            runpy.run_path(str(script), run_name="__main__")
        except Finished:
            pass
        except Exception as error:  # a recorder may not know an operation: keep what was timed
            if not watch.freely:
                raise
            watch.more["failed"] = str(error)[:200]
        finally:
            sys.stdout = out
    if not watch.freely:
        raise RuntimeError(f"only {watch.count} steps")
    return {
        "job": job,
        "live": watch.peaks[0],
        "reserved": watch.peaks[1],
        "median": statistics.median(watch.seconds),
        "min": min(watch.seconds),
        "freely": watch.freely,
        "probe": statistics.median(watch.probes),
        "launch": statistics.median(watch.launches),
        **watch.more,
    }
