"""`tera estimate`: memory, largest batch and step time of a workload on every GPU model, with intervals."""

from collections.abc import Set
from typing import Any, Final

import click

from teraflock.app.home import home
from teraflock.base.errors import BadInput
from teraflock.cli.complete import complete_gpu, complete_model, complete_precision
from teraflock.cli.options import LargeNumber, NumberOf
from teraflock.cli.output import remark, write_json

OLD_CPU: Final = "teraflock.estimate.cpu"
HELP: Final = """Estimate memory, largest batch and step time on every GPU model.

MODEL is the name of a known model (`--models` lists them; names such as `meta-llama/Llama-3.1-8B` work too), a Hugging
Face `config.json` (Llama, Mistral, Mixtral, Qwen, Gemma, Phi, BERT, RoBERTa, ViT, CLIP, T5, BART, Whisper), or a trace
from `tera trace`. `--batch` is the number of samples on each GPU. fp32 means PyTorch's defaults: convolutions may use
TF32, matrix products do not.

\b
Examples:
  tera estimate vgg16 --batch 256
  tera estimate llama-8b --batch 1 --seq 2048 --precision bf16 --lora-rank 16 --gpu L4 --gpu A100
  tera estimate resnet50 --batch 128 --memory-limit 11GiB --json
  tera estimate resnet50 --batch 64 --gpu 'H200 1g.18gb'
  tera estimate resnet50 --batch 64 --gpu H100 --power-limit 400
  tera estimate llama-3.1-8b --batch 1 --seq 2048 --precision bf16 --load-in 4bit --lora-rank 16 --lora-targets all
  tera estimate llama-3.1-8b --users 16 --context 8192 --gpu H100
  tera estimate config.json --batch 1 --seq 4096 --precision amp-bf16 --gpu H100
  tera estimate llama-8b --batch 1 --seq 2048 --precision bf16 --gpu H100 --tensor-parallel 4
  tera estimate job.trace --gpu all --plot memory.svg
"""
NOT_FOR_TRACES: Final = (
    "seq", "image_size", "precision", "optimizer", "gradient_checkpointing", "lora_rank", "task", "kv_cache",
    "lora_targets", "lora_dtype", "load_in", "accumulate", "users", "context",
)  # fmt: skip
NOT_FOR_FILES: Final = (*NOT_FOR_TRACES, "batch", "global_batch", "plot")


@click.command(help=HELP)
@click.argument("model", required=False, shell_complete=complete_model)
@click.option("--batch", type=int, help="Samples per step on each GPU.")
@click.option(
    "--global-batch", type=int, help="Samples per step on all `--gpus` together, instead of `--batch`."
)
@click.option("--seq", type=int, help="Tokens per sample.  [default: 512]")
@click.option("--image-size", type=int, help="Width and height in pixels.  [default: the model's own]")
@click.option(
    "--precision",
    default="fp32",
    shell_complete=complete_precision,
    show_default=True,
    help="fp32, tf32, amp-bf16, amp-fp16, bf16, fp16, fp8. amp-bf16 is autocast over fp32 weights and LoRA matrices"
    " (bf16=True in Trainer); with bf16, the weights, LoRA matrices and optimizer state are in bf16 and there is no"
    " autocast. fp8 is torchao's float8 training under torch.compile.",
)
@click.option(
    "--optimizer",
    default=None,
    help="sgd, adam, adamw, adafactor, adamw-8bit, paged-adamw, paged-adamw-8bit (bitsandbytes), or none: only the"
    " forward and backward pass.  [default: sgd for images, adamw for text]",
)
@click.option("--gradient-checkpointing", is_flag=True, help="Recompute activations in the backward pass.")
@click.option("--lora-rank", type=int, help="Train only LoRA matrices of this rank.")
@click.option(
    "--lora-targets",
    help="Layers with LoRA: query-value, or all linear layers.  [default: query-value]",
)
@click.option(
    "--lora-dtype",
    help="fp32: LoRA matrices in float32 beside 16-bit weights, as peft makes them by default"
    " (autocast_adapter_dtype=True).  [default: the type of the weights]",
)
@click.option(
    "--load-in",
    help="4bit or 8bit: load the weights as bitsandbytes does, in NF4 with double quantization or as LLM.int8.",
)
@click.option(
    "--accumulate",
    type=int,
    help="Passes of `--batch` samples per optimizer step (gradient_accumulation_steps in Trainer).",
)
@click.option(
    "--compile",
    is_flag=True,
    help="Run the model under `torch.compile` with default options. Compiling itself is not included.",
)
@click.option(
    "--users", type=int, help="Estimate serving for this many concurrent users, each with a KV cache."
)
@click.option(
    "--context", type=int, help="With --users: tokens per user, prompt and answer.  [default: 4096]"
)
@click.option("--task", default="train", show_default=True, help="train or infer.")
@click.option("--kv-cache", is_flag=True, help="With --task infer: keep the keys and values of all tokens.")
@click.option(
    "--gpu",
    multiple=True,
    metavar="NAME",
    shell_complete=complete_gpu,
    help="A GPU model, a MIG slice such as 'H200 1g.18gb', or a GPU that you added. Repeatable.  [default: all]",
)
@click.option(
    "--clock",
    type=NumberOf({"MHz": 1.0, "GHz": 1000.0}),
    metavar="MHZ",
    help="Lock the GPU clock at this frequency.",
)
@click.option(
    "--power-limit", type=NumberOf({"kW": 1000.0, "W": 1.0}), metavar="W", help="Limit the GPU power."
)
@click.option(
    "--gpus",
    type=int,
    help="Data-parallel GPUs in one machine.  [default: 1, or the value of `--tensor-parallel`]",
)
@click.option(
    "--tensor-parallel",
    type=int,
    metavar="N",
    help="Split each layer of a transformer over N GPUs; `--batch` is then the number of samples per group of N."
    " Computed, not measured.",
)
@click.option(
    "--shard",
    is_flag=True,
    help="Shard weights, gradients and optimizer state across `--gpus` (FSDP, ZeRO 3).",
)
@click.option(
    "--zero",
    type=int,
    metavar="STAGE",
    help="ZeRO stage: shard the optimizer state across `--gpus` (1), also gradients (2), also weights (3).",
)
@click.option("--offload", is_flag=True, help="Run the optimizer step on the host and keep its state there.")
@click.option(
    "--memory-limit",
    multiple=True,
    metavar="SIZE",
    help="Estimate for an amount of memory: 11GB is a card sold with 11 GB; 11GiB is what PyTorch may reserve.",
)
@click.option(
    "--cpu",
    default="shared",
    show_default=True,
    metavar="[shared|own|NUMBER]",
    callback=lambda ctx, _, value: ctx.meta.get(OLD_CPU, value),
    help="CPU cores of the host: `shared` with others, as on most rented machines, or your `own`. Or how many times as "
    "long as our measured host yours takes to issue a step, such as 2.3.",
)
@click.option(
    "--host",
    "old_cpu",
    hidden=True,
    expose_value=False,
    callback=lambda ctx, _, value: _keep_old_cpu(ctx, value),
)
@click.option(
    "--steps",
    type=LargeNumber(),
    help="Number of steps, each on all GPUs; adds the hours to the output. Or use `--epochs`.",
)
@click.option("--epochs", type=float, help="With --samples: passes over the dataset.")
@click.option(
    "--samples",
    type=LargeNumber(),
    help="With --epochs: samples in the dataset, such as `1281167` or `1.28M`.",
)
@click.option(
    "--cpu-cores",
    type=int,
    default=16,
    show_default=True,
    metavar="N",
    help="Add a row for N CPU cores without a GPU. 0 for none.",
)
@click.option(
    "--expandable-segments", is_flag=True, help="Use PyTorch's allocator setting expandable_segments."
)
@click.option(
    "--from",
    "source",
    type=click.Path(),
    help="Estimate every workload of this CSV file; prints one JSON object per line.",
)
@click.option(
    "--plot", type=click.Path(), help="Draw memory over the step and time per GPU model to this SVG file."
)
@click.option("--models", is_flag=True, help="List the known models.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
def command(
    model: str | None,
    source: str | None,
    plot: str | None,
    models: bool,
    as_json: bool,
    users: int | None,
    context: int | None,
    **words: Any,
) -> None:
    if models:
        from teraflock.workload.zoo import entry, known_names

        if as_json:
            write_json([{"model": name, "kind": entry(name).kind} for name in known_names()])
        else:
            click.echo("\n".join(known_names()))
        return
    from teraflock.app.own_cards import read_own_cards
    from teraflock.estimate.words import EstimateWords, understood

    asked = EstimateWords(model=model or "", **words)
    own_cards = read_own_cards(home())
    if source is not None:
        from teraflock.cli.estimate.many import COLUMNS, answer_many

        _refuse_options_for_a_file(model, COLUMNS)
        answer_many(source, asked, own_cards)
        return
    if model is None:
        raise BadInput(
            "Give a model, or a CSV file with `--from`",
            hint="`tera estimate --models` lists the known models",
        )
    _refuse_options_for_a_trace(model)
    from teraflock.estimate.answer import answer

    if users is not None:
        from teraflock.cli.estimate.serving import answer_serving
        from teraflock.estimate.words import cards_from

        cards = cards_from(asked.gpu, clock=asked.clock, power_limit=asked.power_limit, own_cards=own_cards)
        answer_serving(model, asked, users, context, cards, as_json=as_json)
        return
    if context is not None:
        raise BadInput("`--context` needs `--users`", hint="For a step over that many tokens, use `--seq`")
    workload, question = understood(asked, own_cards)
    estimate = answer(workload, question)
    if plot is not None:
        from pathlib import Path  # imported here: it adds 4 ms to a cold start

        from teraflock.estimate.estimator import Estimator
        from teraflock.estimate.plot import drawn

        try:
            Path(plot).write_text(
                drawn(
                    estimate,
                    Estimator(workload, tensor_parallel=question.tensor_parallel).memory(timeline=True),
                ),
                "utf-8",
            )
        except OSError as error:
            raise BadInput(f"`{plot}` cannot be written: {error.strerror}") from None
        remark(f"Wrote {plot}")
    if as_json:
        from teraflock.wire.estimate import shape_estimate

        write_json(shape_estimate(estimate))
        return
    from teraflock.cli.estimate.table import show

    show(estimate, host=asked.cpu, advise=question.tensor_parallel == 1)


def _keep_old_cpu(ctx: click.Context, value: str | None) -> None:
    """`--host` is the old name of `--cpu` and works for one release. click handles given options before defaults."""
    if value is not None:
        remark(f"`--host {value}` is deprecated; use `--cpu {value}`")
        ctx.meta[OLD_CPU] = value


def _refuse_options_for_a_file(model: str | None, columns: Set[str]) -> None:
    """The rows of a file say what runs, so options that say otherwise would have no effect."""
    if model is not None:
        raise BadInput(
            "Give a model or `--from`, not both", hint="Models are in the column `model` of the file"
        )
    source = click.get_current_context().get_parameter_source
    for name in NOT_FOR_FILES:
        if source(name) is click.core.ParameterSource.COMMANDLINE:
            word = name.replace("_", "-")
            hint = f"Use a column `{name}` in the file" if name in columns else f"Remove `--{word}`"
            raise BadInput(f"`--{word}` does not apply to `--from`", hint=hint)


def _refuse_options_for_a_trace(model: str) -> None:
    """A trace determines what ran, so options that say otherwise would have no effect."""
    from teraflock.workload.model import is_trace

    if not is_trace(model):
        if model.endswith(".py"):
            raise BadInput(
                f"`{model}` is a script", hint=f"Record it first: `tera trace {model} -o job.trace`"
            )
        return
    source = click.get_current_context().get_parameter_source
    for name in NOT_FOR_TRACES:
        if source(name) is click.core.ParameterSource.COMMANDLINE:
            word = name.replace("_", "-")
            raise BadInput(
                f"`--{word}` does not apply to a trace",
                hint=f"Remove `--{word}`, or change the script and record it again",
            )
