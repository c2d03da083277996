"""What a script needs on each GPU of the server's own hosts, from a trace of it."""

import sys
from contextlib import redirect_stdout
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

import click
from msgspec.structs import replace

from teraflock.app.home import home
from teraflock.base.errors import BadInput, TeraflockError
from teraflock.base.quantities import count_text
from teraflock.cli.options import LargeNumber
from teraflock.cli.run.measured import measured_on, narrowed, script_digest
from teraflock.cli.run.request import RunWords
from teraflock.wire.run import RunEstimateBody

if TYPE_CHECKING:
    from teraflock.cli.run.script import Script
    from teraflock.client import Client
    from teraflock.estimate.model import OnGpu

TRACE_SECONDS: Final = 120.0
CARDS_MAX: Final = 20

Expected = tuple[list[RunEstimateBody], tuple[str, ...]]


def expected(client: "Client", words: RunWords) -> Expected:
    """Estimates, one for each GPU that could be used, and notes about what is not known.

    Where earlier runs of the same script on a GPU measured the time of a step, that is used instead.
    """
    found, notes = _computed(client, words)
    script = script_digest(words)
    if not found or not script:
        return found, notes
    known = measured_on(client.runs.page().items, script)
    better = [narrowed(each, known[each.gpu]) if each.gpu in known else each for each in found]
    count = sum(len(known[each.gpu]) for each in found if each.gpu in known)
    more = (f"The step time is that of {count_text(count, 'earlier run')} of this script",) if count else ()
    return [replace(each, script=script) for each in better], (*notes, *more)


def with_steps(words: RunWords) -> RunWords:
    """Ask once how many steps there are, if a trace will be used and only they are missing for time and cost."""
    said = words.options
    is_known = any(said.get(each) for each in ("steps", "epochs", "hours"))
    is_traced = said.get("trace") or (words.python and find_spec("torch") is not None)
    if is_known or not is_traced:
        return words
    text = click.prompt(
        "How many steps will it run? (Enter: unknown)", default="", show_default=False, err=True
    )
    if not text.strip():
        return words
    steps = LargeNumber().convert(text.strip(), None, None)
    return replace(words, options={**said, "steps": steps})


def _computed(client: "Client", words: RunWords) -> Expected:
    """Estimates from a trace of the script, or from the hours that were given."""
    hours = words.options.get("hours")
    if hours:
        given = float(hours)
        if not 0 < given < float("inf"):
            raise BadInput("`--hours` must be a positive number", hint="For example `--hours 12`")
        return [RunEstimateBody(source="hours", hours=(given, given, given))], ()
    with TemporaryDirectory() as folder:
        try:
            trace, note = _trace_of(words, Path(folder))
            if trace is None:
                return [], (f"No estimate: {note}",)
            there = _cards(client)
            wanted = [words.shape.gpu] if words.shape.gpu else there
            # A name may mean several models: only those of the hosts count, unless a machine is rented.
            only = None if words.options.get("provider") or words.options.get("type") else there
            found = [each for each in _on_cards(trace, wanted, words) if only is None or each.gpu in only]
        except TeraflockError as error:
            return [], (f"No estimate: {error.sentence}. Give the time with `--hours N`",)
    if not found:
        return [], ("No estimate: the script fits on no GPU of the hosts, or none has a known speed",)
    is_known = any(words.options.get(each) for each in ("steps", "epochs"))
    return found, () if is_known else ("Add `--steps N` to estimate time and cost",)


def _trace_of(words: RunWords, folder: Path) -> "tuple[Path | None, str]":
    """A file with the trace of the run, or why there is none."""
    named = words.options.get("trace")
    if named:
        return Path(str(named)), ""
    if words.python is None:
        return None, "the command names no Python script that is uploaded. Give the time with `--hours N`"
    if find_spec("torch") is None:
        return (
            None,
            "PyTorch is not installed here. Give the time with `--hours N`, or a trace with `--trace FILE`",
        )
    return _traced(Path(words.workdir), words.python, folder), ""


def _traced(workdir: Path, script: "Script", folder: Path) -> Path:
    """Trace the script. Its output goes to stderr: stdout belongs to the run."""

    from teraflock.workload.trace import write_trace
    from teraflock.workload.tracing.script import trace_script

    with redirect_stdout(sys.stderr):
        trace = trace_script(workdir / script.path, arguments=list(script.arguments), seconds=TRACE_SECONDS)
    path = folder / "run.trace"
    path.write_bytes(write_trace(trace))
    return path


def _cards(client: "Client") -> list[str]:
    """The ids of the GPU models of own hosts."""
    return list(dict.fromkeys(each.shape.gpu for each in client.shapes.list() if each.shape.gpu))[:CARDS_MAX]


def _on_cards(trace: Path, names: list[str], words: RunWords) -> list[RunEstimateBody]:
    from teraflock.app.own_cards import read_own_cards
    from teraflock.estimate.answer import answer
    from teraflock.estimate.words import EstimateWords, understood

    if not names:
        return []
    said = words.options
    steps = said.get("steps")
    asked = EstimateWords(
        model=str(trace), gpu=tuple(names), gpus=max(1, words.shape.gpus or 1), steps=steps, cpu_cores=0,
        epochs=said.get("epochs"), samples=said.get("samples"),
    )  # fmt: skip
    workload, question = understood(asked, read_own_cards(home()))
    return [_body(each, steps) for each in answer(workload, question).gpus if each.fits and each.step_seconds]


def _body(seen: "OnGpu", steps: object) -> RunEstimateBody:
    step, hours = seen.step_seconds, seen.hours
    return RunEstimateBody(
        source="trace",
        gpu=seen.gpu,
        step_seconds=(step.p10, step.p50, step.p90) if step else None,
        steps=int(float(str(steps))) if steps else None,
        hours=(hours.p10, hours.p50, hours.p90) if hours else None,
        memory_bytes=seen.need_bytes,
    )
