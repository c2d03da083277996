"""`tera estimate`: does it fit, how long is a step, how sure is that, on every card."""

from typing import Any, Final

import click

from teraflock.base.errors import BadInput
from teraflock.cli.complete import complete_gpu, complete_model, complete_precision
from teraflock.cli.options import LargeNumber
from teraflock.cli.output import remark, write_json

OLD_CPU: Final = "teraflock.estimate.cpu"
HELP: Final = """What a training or inference step needs on every GPU: memory, the largest batch, time.

MODEL is a known name (`--models` lists them; `meta-llama/Llama-3.1-8B` is understood too), a Hugging Face
`config.json` (Llama, Mistral, Mixtral, Qwen, Gemma, Phi, BERT, RoBERTa, ViT, CLIP, T5, BART, Whisper), or a trace
that `tera trace` wrote. `--batch` counts the samples on each GPU. fp32 means PyTorch's defaults: convolutions may use
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


@click.command(help=HELP)
@click.argument("model", required=False, shell_complete=complete_model)
@click.option("--batch", type=int, help="Samples per step on each GPU.")
@click.option(
    "--global-batch", type=int, help="Samples per step on all `--gpus` together, in place of `--batch`."
)
@click.option("--seq", type=int, help="Tokens per sample.  [default: 512]")
@click.option("--image-size", type=int, help="Pixels on a side.  [default: the model's own]")
@click.option(
    "--precision",
    default="fp32",
    shell_complete=complete_precision,
    show_default=True,
    help="fp32, tf32, amp-bf16, amp-fp16, bf16, fp16. amp-bf16 is autocast over fp32 weights, which Trainer calls"
    " bf16=True; with bf16 the weights and the optimizer's state are in bf16 as well.",
)
@click.option(
    "--optimizer",
    default=None,
    help="sgd, adam, adamw, adafactor, adamw-8bit, paged-adamw, paged-adamw-8bit (bitsandbytes), or none: forward and"
    " backward alone.  [default: sgd for images, adamw for text]",
)
@click.option("--gradient-checkpointing", is_flag=True, help="Recompute activations in the backward pass.")
@click.option("--lora-rank", type=int, help="Train LoRA matrices of this rank, and nothing else.")
@click.option(
    "--lora-targets",
    help="Layers with LoRA: query-value, or all linear layers.  [default: query-value]",
)
@click.option(
    "--load-in",
    help="4bit: weights as bitsandbytes keeps them for QLoRA, NF4 with double quantization.",
)
@click.option(
    "--accumulate",
    type=int,
    help="Passes of `--batch` samples for each step of the optimizer: gradient_accumulation_steps of Trainer.",
)
@click.option("--users", type=int, help="Estimate serving: so many users at once, with a KV cache each.")
@click.option(
    "--context", type=int, help="With --users: tokens of each user, prompt and answer.  [default: 4096]"
)
@click.option("--task", default="train", show_default=True, help="train or infer.")
@click.option("--kv-cache", is_flag=True, help="Inference that keeps keys and values of all tokens.")
@click.option(
    "--gpu",
    multiple=True,
    metavar="NAME",
    shell_complete=complete_gpu,
    help="A card, a MIG slice such as 'H200 1g.18gb', or one you added; repeat it.  [default: all]",
)
@click.option("--clock", type=float, metavar="MHZ", help="Lock the GPU's clock at this.")
@click.option("--power-limit", type=float, metavar="W", help="Limit the GPU's power to this.")
@click.option(
    "--gpus",
    type=int,
    help="GPUs of one machine, data parallel.  [default: 1, or as many as `--tensor-parallel`]",
)
@click.option(
    "--tensor-parallel",
    type=int,
    metavar="N",
    help="Groups of N of these GPUs divide each layer of a transformer; `--batch` then counts the samples of a group."
    " Computed, not measured.",
)
@click.option(
    "--memory-limit",
    multiple=True,
    metavar="SIZE",
    help="Ask about an amount of memory: 11GB is a card sold with 11 GB; 11GiB is what PyTorch itself may reserve.",
)
@click.option(
    "--cpu",
    default="shared",
    show_default=True,
    metavar="[shared|own]",
    callback=lambda ctx, _, value: ctx.meta.get(OLD_CPU, value),
    help="CPU cores of the host: `shared` with others, as on most rented servers, or your `own`.",
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
    help="Steps to run, each on all GPUs: adds the hours. `--epochs` counts samples instead.",
)
@click.option("--epochs", type=float, help="With --samples: passes over the data.")
@click.option(
    "--samples", type=LargeNumber(), help="With --epochs: samples in the data, such as `1281167` or `1.28M`."
)
@click.option(
    "--cpu-cores",
    type=int,
    default=16,
    show_default=True,
    metavar="N",
    help="Add a row for N CPU cores without a GPU. 0 for none.",
)
@click.option("--expandable-segments", is_flag=True, help="The allocator's setting of that name.")
@click.option("--from", "source", type=click.Path(), help="A CSV of workloads: one JSON object per line.")
@click.option("--plot", type=click.Path(), help="Draw memory over the step and time per card as SVG.")
@click.option("--models", is_flag=True, help="List the models that are known by name.")
@click.option("--json", "as_json", is_flag=True, help="A JSON object on stdout.")
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
    from teraflock.app.home import home
    from teraflock.app.own_cards import read_own_cards
    from teraflock.estimate.words import EstimateWords, understood

    asked = EstimateWords(model=model or "", **words)
    own_cards = read_own_cards(home())
    if source is not None:
        from teraflock.cli.estimate.many import answer_many

        answer_many(source, asked, own_cards)
        return
    if model is None:
        raise BadInput(
            "Say which model, or give a CSV with `--from`", hint="`tera estimate --models` lists them"
        )
    _refuse_words_for_a_trace(model)
    import gc

    from teraflock.estimate.answer import answer

    gc.disable()  # one answer and out: collecting the replay's blocks would only cost the cold start
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
        from pathlib import Path  # here: it costs the cold start 4 ms

        from teraflock.estimate.estimator import Estimator
        from teraflock.estimate.plot import drawn

        try:
            Path(plot).write_text(
                drawn(estimate, Estimator(workload, tensor_parallel=question.tensor_parallel).memory()),
                "utf-8",
            )
        except OSError as error:
            raise BadInput(f"`{plot}` cannot be written: {error.strerror}") from None
        remark(f"Drawn: {plot}")
    if as_json:
        from teraflock.wire.estimate import shape_estimate

        write_json(shape_estimate(estimate))
        return
    from teraflock.cli.estimate.table import show

    show(estimate, host=asked.cpu, advise=question.tensor_parallel == 1)


def _keep_old_cpu(ctx: click.Context, value: str | None) -> None:
    """`--host` was the name of `--cpu` and works for one release. click handles given options before defaults."""
    if value is not None:
        remark(f"`--host {value}` is deprecated; use `--cpu {value}`")
        ctx.meta[OLD_CPU] = value


def _refuse_words_for_a_trace(model: str) -> None:
    """A trace says itself what ran: a word to the contrary would go unheard."""
    from teraflock.workload.model import is_trace

    if not is_trace(model):
        if model.endswith(".py"):
            raise BadInput(
                f"`{model}` is a script", hint=f"`tera trace {model} -o job.trace` records it first"
            )
        return
    source = click.get_current_context().get_parameter_source
    for name in OF_THE_ZOO:
        if source(name) is click.core.ParameterSource.COMMANDLINE:
            word = name.replace("_", "-")
            raise BadInput(
                f"A trace says itself what ran, and `--{word}` cannot change it",
                hint=f"Leave `--{word}` out, or change the script and record it again",
            )


OF_THE_ZOO: Final = (
    "seq", "image_size", "precision", "optimizer", "gradient_checkpointing", "lora_rank", "task", "kv_cache",
    "lora_targets", "load_in", "accumulate", "users", "context",
)  # fmt: skip
