"""`tera estimate MODEL --users N --context T`: serve a language model on every GPU model."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import click
import msgspec

from teraflock.base.errors import BadInput
from teraflock.base.quantities import GIB
from teraflock.cli.output import remark, write_json
from teraflock.cli.table import Column, write_rows
from teraflock.estimate.serving import Load, serve
from teraflock.workload.model import Workload

if TYPE_CHECKING:
    from teraflock.catalog.model import Card
    from teraflock.estimate.serving import Serving, ServingAnswer
    from teraflock.estimate.words import EstimateWords

CONTEXT_DEFAULT: Final = 4096
TRAINING_ONLY: Final = (
    "batch", "global_batch", "seq", "image_size", "optimizer", "gradient_checkpointing", "lora_rank", "lora_targets",
    "accumulate", "load_in", "kv_cache", "gpus", "memory_limit", "steps", "epochs", "samples", "plot", "source",
    "compile", "lora_dtype",
)  # fmt: skip
_COLUMNS: Final = [
    Column("GPU"),
    Column("fits"),
    Column("max users", right=True),
    Column("first token", right=True),
    Column("tokens/s per user", right=True),
    Column("tokens/s", right=True),
    Column("evidence", flexible=True, worth=2),
]


def answer_serving(
    model: str,
    words: "EstimateWords",
    users: int,
    context: int | None,
    cards: "Sequence[Card]",
    *,
    as_json: bool,
) -> None:

    source = click.get_current_context().get_parameter_source
    given = click.core.ParameterSource.COMMANDLINE
    for name in TRAINING_ONLY:
        if source(name) is given:
            word = {"source": "from"}.get(name, name.replace("_", "-"))
            raise BadInput(f"`--{word}` does not apply to serving", hint=f"Remove `--{word}` or `--users`")
    if words.ways > 1:
        raise BadInput("Serving is estimated for one GPU only", hint="Remove `--tensor-parallel`")
    precision = words.precision if source("precision") is given else "bf16"
    load = Load(users=users, context=context or CONTEXT_DEFAULT)
    workload = Workload(model=model, task="infer", batch=load.users, seq=load.context, precision=precision)
    answer = serve(workload, load, cards)
    if as_json:
        write_json(msgspec.to_builtins(answer))
        return
    show(answer)


def show(answer: "ServingAnswer") -> None:
    write_rows(_COLUMNS, [_cells(row) for row in answer.gpus])
    load = answer.load
    remark(
        f"\nMemory: {answer.weights_bytes / GIB:.1f} GiB of weights, {answer.kv_cache_bytes / GIB:.2f} GiB of KV cache"
        f" for {load.users} user{'s' * (load.users > 1)} with {load.context:,} tokens each"
    )
    remark("First token: the prefill of a prompt as long as the context, with no other users")
    remark("Tokens per second: decoding at full context with CUDA graphs, as in vLLM")


def _cells(row: "Serving") -> list[str]:
    first, each, total = row.first_token_seconds, row.tokens_per_second_per_user, row.tokens_per_second
    return [
        row.gpu,
        "yes" if row.fits else "no",
        f"{row.users_max:,}",
        "" if first is None else f"{first.p50 * 1e3:,.0f} ms" if first.p50 < 1 else f"{first.p50:.2f} s",
        "" if each is None else f"{each:,.1f}" if each < 100 else f"{each:,.0f}",
        "" if total is None else f"{total:,.0f}",
        row.evidence,
    ]
