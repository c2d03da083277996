"""`tera trace`: record one step of a script, without a GPU."""

import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from teraflock.app.files import put
from teraflock.base.errors import BadInput
from teraflock.cli.output import remark, write_json

if TYPE_CHECKING:
    from teraflock.workload.trace import SeenInTrace, Trace

HELP: Final = """Record one step of a PyTorch script for `tera estimate`. You need no GPU and no weights.

The script runs unchanged. Tensors on the GPU have shapes but no values. Everything on the CPU runs normally: data
loaders, numpy, tokenizers. `tera trace` detects the steps and stops the script after the second one. It recognizes
gradient accumulation, several optimizers, evaluation between steps and plain inference. Check the printed summary to
see what it found.

`SCRIPT` is a Python file or a notebook; `-m package.module` runs a module of this folder, as `python -m` does. Use
`--entry module:function` to run a function instead. If the function has a parameter `batch`, you can use the trace
with any batch.

With `--any-batch`, the script runs three times, with one, two and three times its batch. `tera estimate` can then use
the trace with any batch and finds the largest one for each GPU. The batch is found in an argument such as
`--batch-size 32`, in a data loader, or in a name such as `batch_size = 32`.

Requires PyTorch 2.4 or later, with or without CUDA: `pip install 'teraflock[trace]'`.

\b
Examples:
  tera trace train.py -o job.trace
  tera trace train.py -o job.trace -- --model resnet50 --batch 64
  tera trace train.py --any-batch -o job.trace
  tera trace analysis.ipynb -o job.trace
  tera trace -m package.train -o job.trace -- --epochs 2
  tera trace --entry train:main -o job.trace
"""


@click.command(help=HELP, context_settings={"ignore_unknown_options": False})
@click.argument("script", required=False, type=click.Path(path_type=Path))
@click.argument("arguments", nargs=-1)
@click.option(
    "-m", "module", metavar="MODULE", help="Run this module instead of a script, as `python -m` does."
)
@click.option("--entry", help="Run this module:function instead of a script.")
@click.option(
    "-o", "--out", type=click.Path(path_type=Path), required=True, help="Write the trace to this file."
)
@click.option(
    "--time-limit", "seconds", type=click.FloatRange(min=1), default=300.0, show_default=True,
    metavar="SECONDS", help="Stop the script if it has not completed a step after this time.",
)  # fmt: skip
@click.option("--any-batch", is_flag=True, help="Record a trace that can be used with any batch.")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as a JSON object.")
def command(
    script: Path | None,
    arguments: tuple[str, ...],
    module: str | None,
    entry: str | None,
    out: Path,
    seconds: float,
    any_batch: bool,
    as_json: bool,
) -> None:
    if module and not entry:  # then the first word is an argument of the module
        arguments, script = (*([str(script)] if script else []), *arguments), Path.cwd()
    if (script is None) == (entry is None):
        raise BadInput("Give either a script, `-m module` or `--entry module:function`")
    if script is not None and not module and not script.is_file():
        raise BadInput(f"File not found: `{script}`")
    if any_batch and script is None:
        raise BadInput(
            "`--any-batch` needs a script",
            hint="Give the function of `--entry` a parameter `batch`: its trace can be used with any batch",
        )
    if out.is_dir() or not out.parent.is_dir():  # said before the script runs, which may take minutes
        raise BadInput(
            f"`{out}` cannot be written: {'it is a' if out.is_dir() else 'there is no such'} folder"
        )
    trace = _traced(script, arguments, module or "", entry, seconds, any_batch=any_batch, quiet=as_json)
    from teraflock.workload.trace import write_trace

    data = write_trace(trace)
    _write(out, data)
    if as_json:
        write_json(shape(trace))
        return
    for line in lines(trace):
        remark(line)
    remark(f"Wrote {out}: {len(data):,} bytes. Next: tera estimate {out}")


def _write(out: Path, data: bytes) -> None:
    """The whole file or nothing: a full disk leaves an older trace as it was."""
    try:
        if out.exists() and not out.is_file():  # such as `/dev/null`
            out.write_bytes(data)
        else:
            put(out, data)
    except OSError as error:
        raise BadInput(f"`{out}` cannot be written: {error.strerror}") from None


def _traced(
    script: Path | None,
    arguments: tuple[str, ...],
    module: str,
    entry: str | None,
    seconds: float,
    *,
    any_batch: bool,
    quiet: bool,
) -> "Trace":

    try:
        from teraflock.workload.tracing.script import trace_entry, trace_script
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise BadInput("`tera trace` requires PyTorch", hint="pip install 'teraflock[trace]'") from None
    # With `--json`, the output of the script must not mix with the JSON on stdout.
    with contextlib.redirect_stdout(sys.stderr) if quiet else contextlib.nullcontext():
        if script is not None:
            return trace_script(
                script, module=module, arguments=list(arguments), seconds=seconds, any_batch=any_batch
            )
        return trace_entry(entry or "", folder=Path.cwd(), seconds=seconds)


def shape(trace: "Trace") -> dict[str, Any]:
    seen = msgspec.to_builtins(trace.seen) if trace.seen else {}
    return {
        "name": trace.name,
        "task": "train" if trace.has_backward else "infer",
        "samples_per_step": trace.samples,
        "precision": trace.precision,
        **seen,
    }


def lines(trace: "Trace") -> list[str]:
    """The summary of a trace, so that the user can check what was detected."""
    seen = trace.seen
    if seen is None:
        return []
    rows = [("Parameters", _parameters(seen)), ("Step", _step(trace, seen)), ("Precision", trace.precision)]
    if seen.optimizers:
        rows.append(("Optimizer", ", ".join(seen.optimizers)))
    width = max(len(name) for name, _ in rows)
    return [f"{name + ':':<{width + 1}} {text}" for name, text in rows] + [
        f"Note: {each}" for each in seen.notes
    ]


def _parameters(seen: "SeenInTrace") -> str:
    parts = [f"{count:,} {kind}" for kind, count in seen.parameters.items()]
    total = sum(seen.parameters.values())
    trained = f"; {seen.trained:,} trained" if seen.trained and seen.trained != total else ""
    return (", ".join(parts) or "none") + trained


def _step(trace: "Trace", seen: "SeenInTrace") -> str:
    words = [f"{trace.samples:,} samples" if trace.samples else "any batch"]
    if seen.input_shape:
        words.append("input " + "×".join("batch" if each < 0 else str(each) for each in seen.input_shape))
    words.append(f"{seen.forward_passes} forward pass{'es' * (seen.forward_passes != 1)}")
    if seen.backward_passes:
        words.append(f"{seen.backward_passes} backward pass{'es' * (seen.backward_passes != 1)}")
    return ", ".join(words)
