"""`tera estimate`: does it fit, how long is a step, how sure is that, on every card."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from teraflock.base.errors import BadInput
from teraflock.base.quantities import GIB, parse_memory_bytes
from teraflock.cli.output import columns, remark, write_json
from teraflock.cli.table import Column, render
from teraflock.cli.workload import workload_from

if TYPE_CHECKING:
    from teraflock.catalog.model import Card
    from teraflock.estimate.answer import Estimate, OnGpu, Question
    from teraflock.workload.model import Workload

HELP: Final = """What a training or inference step needs on every GPU: memory, the largest batch, time.

MODEL is a name of the zoo (`--models` lists them) or a trace that `tera trace` wrote. `--batch` counts the samples
on each GPU. fp32 means PyTorch's defaults: convolutions may use TF32, matrix products do not.

\b
Examples:
  tera estimate vgg16 --batch 256
  tera estimate llama-8b --batch 1 --seq 2048 --precision bf16 --lora-rank 16 --gpu L4 --gpu A100
  tera estimate resnet50 --batch 128 --memory-limit 11GiB --json
  tera estimate job.trace --gpu all --plot memory.svg
"""


@click.command(help=HELP)
@click.argument("model", required=False)
@click.option("--batch", type=int, help="Samples per step on each GPU.")
@click.option("--seq", type=int, help="Tokens per sample.  [default: 512]")
@click.option("--image-size", type=int, help="Pixels on a side.  [default: the model's own]")
@click.option(
    "--precision", default="fp32", show_default=True, help="fp32, tf32, amp-bf16, amp-fp16, bf16, fp16."
)
@click.option(
    "--optimizer",
    default=None,
    help="sgd, adam, adamw, adafactor.  [default: sgd for images, adamw for text]",
)
@click.option("--gradient-checkpointing", is_flag=True, help="Recompute activations in the backward pass.")
@click.option("--lora-rank", type=int, help="Train LoRA matrices of this rank on q and v, and nothing else.")
@click.option("--task", default="train", show_default=True, help="train or infer.")
@click.option("--kv-cache", is_flag=True, help="Inference that keeps keys and values of all tokens.")
@click.option(
    "--gpu",
    "gpu_names",
    multiple=True,
    metavar="NAME",
    help="A card, however it is written; repeat it.  [default: all]",
)
@click.option(
    "--gpus",
    type=click.IntRange(1, 8),
    default=1,
    show_default=True,
    help="GPUs of one machine, data parallel.",
)
@click.option(
    "--memory-limit",
    "limits",
    multiple=True,
    metavar="SIZE",
    help="Ask about a budget that PyTorch may reserve, such as 11GiB.",
)
@click.option("--steps", type=float, help="Steps to run: adds the hours.")
@click.option("--epochs", type=float, help="With --samples: passes over the data.")
@click.option("--samples", type=float, help="With --epochs: samples in the data.")
@click.option("--expandable-segments", is_flag=True, help="The allocator's setting of that name.")
@click.option(
    "--from", "source", type=click.Path(path_type=Path), help="A CSV of workloads: one JSON object per line."
)
@click.option(
    "--plot", type=click.Path(path_type=Path), help="Draw memory over the step and time per card as SVG."
)
@click.option("--models", is_flag=True, help="List the models of the zoo.")
@click.option("--json", "as_json", is_flag=True, help="A JSON object on stdout.")
def command(model: str | None, **options: Any) -> None:
    if options["models"]:
        from teraflock.workload.zoo import ENTRIES

        click.echo("\n".join(sorted(ENTRIES)))
        return
    if options["source"] is not None:
        _many(options["source"], options)
        return
    if model is None:
        raise BadInput(
            "Say which model, or give a CSV with `--from`", hint="`tera estimate --models` lists them"
        )
    import gc

    from teraflock.estimate.answer import answer

    gc.disable()  # one answer and out: collecting the replay's blocks would only cost the cold start
    workload = workload_from(model, options)
    question = _question(options, cards=_cards(options["gpu_names"], limits=options["limits"]))
    _refuse_all(question.cards, workload.precision)
    estimate = answer(workload, question)
    if options["plot"] is not None:
        from teraflock.estimate.answer import Estimator
        from teraflock.estimate.plot import drawn

        options["plot"].write_text(drawn(estimate, Estimator(workload).memory()), "utf-8")
        remark(f"Drawn: {options['plot']}")
    if options["as_json"]:
        write_json(_shape(estimate))
        return
    _show(estimate, options)


def _refuse_all(cards: "Sequence[Card]", precision: str) -> None:
    """Where every card asked for refuses the precision, that is a mistake and not an answer."""
    from teraflock.estimate.cards import refuses

    if cards and all(refuses(card, precision) for card in cards):
        raise BadInput(
            f"{cards[0].id}: {refuses(cards[0], precision)}",
            hint="Choose another precision, or newer cards"
            if len(cards) == 1
            else "None of these cards has it",
        )


def _question(options: dict[str, Any], *, cards: "Sequence[Card]") -> "Question":
    from teraflock.estimate.answer import Limit, Question

    if (options["epochs"] is None) != (options["samples"] is None):
        raise BadInput("`--epochs` and `--samples` belong together", hint="Or say `--steps`")
    samples = options["epochs"] * options["samples"] if options["epochs"] is not None else None
    return Question(
        cards=cards,
        limits=[Limit(text, parse_memory_bytes(text)) for text in options["limits"]],
        gpus=options["gpus"],
        steps=options["steps"],
        samples=samples,
        expandable_segments=options["expandable_segments"],
        coarse=options["source"] is not None,
    )


def _cards(names: Sequence[str], *, limits: Sequence[str] = ()) -> "Sequence[Card]":
    from teraflock.catalog.cards import all_cards

    if not names and limits:
        return ()
    if not names or "all" in names:
        return [card for card in all_cards() if card.cuda or card.memory_gb]
    from teraflock.catalog.names import find_cards

    found: dict[str, Card] = {}
    for name in names:
        for card in find_cards(name):
            found.setdefault(card.id, card)
    return list(found.values())


def _many(source: Path, options: dict[str, Any]) -> None:
    """One JSON object per line, in the order of the file; the rows are shared between the processors there are."""
    import os
    import sys
    from functools import partial

    rows = list(enumerate(_rows(source)))  # a row that cannot be read is told before any is answered
    workers = min(os.cpu_count() or 1, len(rows) // ROWS_PER_WORKER_MIN)
    answered = partial(_line, options)
    if workers < 2:
        lines: Iterable[bytes] = map(answered, rows)
        sys.stdout.buffer.writelines(lines)
    else:
        from concurrent.futures import ProcessPoolExecutor

        with ProcessPoolExecutor(workers) as pool:
            sys.stdout.buffer.writelines(pool.map(answered, rows, chunksize=ROWS_PER_CHUNK))
    sys.stdout.flush()


ROWS_PER_WORKER_MIN: Final = 12  # below, starting a process costs more than it saves
ROWS_PER_CHUNK: Final = 4


def _line(options: dict[str, Any], row: "tuple[int, tuple[Workload, str, str]]") -> bytes:
    import gc

    import msgspec

    from teraflock.base.errors import TeraflockError
    from teraflock.estimate.answer import answer

    index, (workload, gpu, where) = row
    gc.disable()  # blocks of a replay form rings: they are collected between workloads, not within
    if index % COLLECT_EVERY == COLLECT_EVERY - 1:
        gc.collect()
    names = options["gpu_names"] or (() if options["limits"] else (gpu or "all",))
    try:
        estimate = answer(workload, _question(options, cards=_cards(names, limits=options["limits"])))
    except TeraflockError as error:
        raise BadInput(f"{where}: {error.sentence}", hint=error.hint) from None
    return msgspec.json.encode(_shape(estimate)) + b"\n"


def _rows(source: Path) -> "Iterator[tuple[Workload, str, str]]":
    import csv

    from teraflock.base.errors import TeraflockError
    from teraflock.workload.model import Workload

    try:
        text = source.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"`{source}` cannot be read: {error}") from None
    reader = csv.DictReader(text.splitlines())
    missing = {"model", "batch"} - set(reader.fieldnames or ())
    if missing:
        raise BadInput(f"`{source}` lacks the column {', '.join(f'`{each}`' for each in sorted(missing))}")
    for row in reader:
        where = f"{source}, line {reader.line_num}"
        try:
            task = row.get("task") or "train"
            yield (
                Workload(
                    model=row["model"],
                    task=task,
                    batch=int(row["batch"]),
                    seq=int(row["seq"]) if row.get("seq") else None,
                    image_size=int(row["image_size"]) if row.get("image_size") else None,
                    precision=row.get("precision") or "fp32",
                    optimizer=row.get("optimizer") or ("sgd" if task == "train" else ""),
                    gradient_checkpointing=row.get("gradient_checkpointing") in ("1", "true", "True"),
                    lora_rank=int(row["lora_rank"]) if row.get("lora_rank") else None,
                ),
                row.get("gpu") or "",
                where,
            )
        except ValueError:
            raise BadInput(f"{where}: a number was expected") from None
        except TeraflockError as error:
            raise BadInput(f"{where}: {error.sentence}", hint=error.hint) from None


def _shape(estimate: "Estimate") -> dict[str, Any]:
    """The JSON that is promised; further fields may join, these stay."""
    import msgspec

    shape: dict[str, Any] = msgspec.to_builtins(estimate)
    for row in shape["gpus"]:
        if row["hours"] is None:
            del row["hours"]
    return shape


COLLECT_EVERY: Final = 8
_COLUMNS: Final = [
    Column("GPU"),
    Column("fits"),
    Column("room", right=True, worth=6),
    Column("largest batch", right=True, worth=7),
    Column("step p10–p50–p90", right=True),
    Column("samples/s", right=True, worth=5),
    Column("hours", right=True, worth=5),
    Column("evidence", flexible=True, worth=2),
]


def _show(estimate: "Estimate", options: dict[str, Any]) -> None:
    click.echo(render(_COLUMNS, [_cells(row, estimate.workload.batch) for row in estimate.gpus], columns()))
    memory = estimate.memory
    parts = sorted(memory.breakdown.items(), key=lambda each: -each[1])
    remark(
        f"\nPeak: {_gib(memory.live_peak_bytes)} live, {_gib(memory.reserved_peak_bytes)} reserved if it may,"
        f" {_gib(memory.device_peak_bytes)} on the device"
    )
    if estimate.gpus:
        remark(f"A tight fit needs {_gib(estimate.gpus[0].need_bytes)}, without convolution workspaces")
    remark(
        "At the peak: "
        + ", ".join(f"{_gib(size)} {name.replace('_', ' ')}" for name, size in parts if size > 1 << 20)
    )
    remark("The data pipeline is assumed not to limit; hours hold for steps back to back")
    if estimate.gpus and not any(row.fits for row in estimate.gpus):
        _suggest(estimate, options)


def _suggest(estimate: "Estimate", options: dict[str, Any]) -> None:
    """What would make it fit, with the numbers."""
    from teraflock.estimate.advice import advice

    room = max(row.memory_bytes for row in estimate.gpus)
    remark(
        f"\nNone of these cards has room: the largest leaves {_gib(room)} to PyTorch. What would change that:"
    )
    for line in advice(estimate, room):
        remark(f"  {line}")


def _cells(row: "OnGpu", batch: int) -> list[str]:
    spare = row.memory_bytes - row.need_bytes
    return [
        row.gpu,
        ("yes" if row.fits else "no")
        + (f", OOM {row.oom_probability:.0%}" if 0.01 < row.oom_probability < 0.99 else ""),
        f"{spare / GIB:+.1f} GB",
        "?" if row.largest_batch is None else f"{row.largest_batch:,}",
        _interval(row),
        "" if row.samples_per_second is None else _figure(row.samples_per_second, 4),
        "" if row.hours is None else "–".join(map(_figure, (row.hours.p10, row.hours.p50, row.hours.p90))),
        row.evidence,
    ]


def _interval(row: "OnGpu") -> str:
    if row.step_seconds is None:
        return ""
    each = row.step_seconds
    unit, scale = ("s", 1.0) if each.p90 >= 1 else ("ms", 1e3)
    return "–".join(_figure(value * scale) for value in (each.p10, each.p50, each.p90)) + f" {unit}"


def _figure(value: float, digits: int = 3) -> str:
    """So many digits that count, and never an exponent."""
    return f"{value:,.0f}" if value >= 10 ** (digits - 1) else f"{value:.{digits}g}"


def _gib(size: int) -> str:
    return f"{size / GIB:.2f} GB" if size < 10 * GIB else f"{size / GIB:.1f} GB"
