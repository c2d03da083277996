"""`tera trace`: record one step of a training script, without a GPU."""

from pathlib import Path
from typing import Final

import click

from teraflock.base.errors import BadInput
from teraflock.cli.output import remark

HELP: Final = """Record two steps of a PyTorch training script for `tera estimate`: no GPU, no weights, no data.

The script runs as it is, with tensors that have shapes and no numbers; what it would put on CUDA is followed there.
After its second optimizer step it is stopped. With `--entry module:function` a function is run instead; if it has a
parameter `batch`, the trace answers for any batch. Needs PyTorch: `pip install 'teraflock[trace]'`.

\b
Examples:
  tera trace train.py -o job.trace
  tera trace --entry train:main -o job.trace
  tera trace train.py -o job.trace -- --model resnet50 --batch 64
"""


@click.command(help=HELP, context_settings={"ignore_unknown_options": False})
@click.argument("script", required=False, type=click.Path(path_type=Path))
@click.argument("arguments", nargs=-1)
@click.option("--entry", help="module:function to run in place of a script.")
@click.option("-o", "--out", type=click.Path(path_type=Path), required=True, help="The trace to write.")
def command(script: Path | None, arguments: tuple[str, ...], entry: str | None, out: Path) -> None:
    if (script is None) == (entry is None):
        raise BadInput("Say either a script or `--entry module:function`")
    if script is not None and not script.is_file():
        raise BadInput(f"There is no file `{script}`")
    try:
        from teraflock.workload.tracing.script import trace_entry, trace_script
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise BadInput("`tera trace` needs PyTorch", hint="pip install 'teraflock[trace]'") from None
    from teraflock.workload.trace import write_trace

    if script is not None:
        trace = trace_script(script, arguments=list(arguments))
    else:
        trace = trace_entry(entry or "", folder=Path.cwd())
    data = write_trace(trace)
    try:
        out.write_bytes(data)
    except OSError as error:
        raise BadInput(f"`{out}` cannot be written: {error.strerror}") from None
    remark(
        f"Wrote {out}: {len(trace.operations):,} kinds of operation, {len(data):,} bytes. Next: tera estimate {out}"
    )
