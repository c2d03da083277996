"""`tera trace`: record one step of a script, without a GPU."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from teraflock.base.errors import BadInput
from teraflock.cli.output import remark

if TYPE_CHECKING:
    from teraflock.workload.trace import Seen, Trace

HELP: Final = """Record one step of a PyTorch script for `tera estimate`: no GPU, no weights, no data needed.

The script runs as it is. Tensors on the GPU have shapes and no values; everything on the CPU runs for real: data
loaders, numpy, tokenizers. When a step has come twice, the script is stopped. A step is found, not assumed: gradient
accumulation, several optimizers, evaluation in between and plain inference are told apart. Check what was seen in the
lines that are printed.

`SCRIPT` is a Python file or a notebook. With `--entry module:function` a function is run instead; if it has a
parameter `batch`, the trace answers for any batch. Needs PyTorch 2.8 or later, with or without CUDA:
`pip install 'teraflock[trace]'`.

\b
Examples:
  tera trace train.py -o job.trace
  tera trace train.py -o job.trace -- --model resnet50 --batch 64
  tera trace analysis.ipynb -o job.trace
  tera trace --entry train:main -o job.trace
"""


@click.command(help=HELP, context_settings={"ignore_unknown_options": False})
@click.argument("script", required=False, type=click.Path(path_type=Path))
@click.argument("arguments", nargs=-1)
@click.option("--entry", help="module:function to run in place of a script.")
@click.option("-o", "--out", type=click.Path(path_type=Path), required=True, help="The trace to write.")
@click.option(
    "--time-limit", "seconds", type=click.FloatRange(min=1), default=300.0, show_default=True,
    metavar="SECONDS", help="Stop a script that has no whole step after this time.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="What was seen, as a JSON object on stdout.")
def command(
    script: Path | None,
    arguments: tuple[str, ...],
    entry: str | None,
    out: Path,
    seconds: float,
    as_json: bool,
) -> None:
    if (script is None) == (entry is None):
        raise BadInput("Say either a script or `--entry module:function`")
    if script is not None and not script.is_file():
        raise BadInput(f"There is no file `{script}`")
    trace = _traced(script, arguments, entry, seconds, quiet=as_json)
    from teraflock.workload.trace import write_trace

    data = write_trace(trace)
    try:
        out.write_bytes(data)
    except OSError as error:
        raise BadInput(f"`{out}` cannot be written: {error.strerror}") from None
    if as_json:
        from teraflock.cli.output import write_json

        write_json(shape(trace))
        return
    for line in lines(trace):
        remark(line)
    remark(f"Wrote {out}: {len(data):,} bytes. Next: tera estimate {out}")


def _traced(
    script: Path | None, arguments: tuple[str, ...], entry: str | None, seconds: float, *, quiet: bool
) -> "Trace":
    import contextlib
    import sys

    try:
        from teraflock.workload.tracing.script import trace_entry, trace_script
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise BadInput("`tera trace` needs PyTorch", hint="pip install 'teraflock[trace]'") from None
    # What the script prints is not the answer.
    with contextlib.redirect_stdout(sys.stderr) if quiet else contextlib.nullcontext():
        if script is not None:
            return trace_script(script, arguments=list(arguments), seconds=seconds)
        return trace_entry(entry or "", folder=Path.cwd(), seconds=seconds)


def shape(trace: "Trace") -> dict[str, Any]:
    import msgspec

    seen = msgspec.to_builtins(trace.seen) if trace.seen else {}
    return {
        "name": trace.name,
        "task": "train" if trace.has_backward else "infer",
        "samples_per_step": trace.samples,
        "precision": trace.precision,
        **seen,
    }


def lines(trace: "Trace") -> list[str]:
    """What was seen, so that a wrong guess is noticed at once."""
    seen = trace.seen
    if seen is None:
        return []
    told = [("Parameters", _parameters(seen)), ("Step", _step(trace, seen)), ("Precision", trace.precision)]
    if seen.optimizers:
        told.append(("Optimizer", ", ".join(seen.optimizers)))
    width = max(len(name) for name, _ in told)
    return [f"{name + ':':<{width + 1}} {text}" for name, text in told] + [
        f"Note: {each}" for each in seen.notes
    ]


def _parameters(seen: "Seen") -> str:
    parts = [f"{count:,} {kind}" for kind, count in seen.parameters.items()]
    total = sum(seen.parameters.values())
    trained = f"; {seen.trained:,} trained" if seen.trained and seen.trained != total else ""
    return (", ".join(parts) or "none") + trained


def _step(trace: "Trace", seen: "Seen") -> str:
    words = [f"{trace.samples:,} samples" if trace.samples else "any batch"]
    if seen.input_shape:
        words.append("input " + "×".join("batch" if each < 0 else str(each) for each in seen.input_shape))
    words.append(f"{seen.forward_passes} forward pass{'es' * (seen.forward_passes != 1)}")
    if seen.backward_passes:
        words.append(f"{seen.backward_passes} backward pass{'es' * (seen.backward_passes != 1)}")
    return ", ".join(words)
