"""`tera plan`: list the cheapest offers for a job or a machine, and explain why others were rejected."""

from typing import Any, ClassVar, Final

import click
from msgspec.structs import asdict

from teraflock.app.local import Local
from teraflock.app.owned_servers import read_servers
from teraflock.cli.complete import (
    complete_currency,
    complete_gpu,
    complete_model,
    complete_precision,
    complete_provider,
    complete_region,
    complete_source,
)
from teraflock.cli.lazy import DefaultCommand, DefaultGroup
from teraflock.cli.offer.filters import Suggested
from teraflock.cli.offer.footer import rate_text
from teraflock.cli.options import LargeNumber
from teraflock.cli.output import remark, write_json
from teraflock.cli.plan.printing import print_plan
from teraflock.offer.model import MODES
from teraflock.plan.answer import answer
from teraflock.plan.model import SORTS
from teraflock.plan.service import left_out
from teraflock.plan.words import TOP, PlanWords
from teraflock.wire.plan import shape_left_out, shape_plan

HELP: Final = """Find the cheapest offers that finish a job, among all offers and your own hosts.

MODEL is the name of a zoo model or a trace, as in `tera estimate`. Without MODEL, plan a machine with `--hours` or
`--hours-per-month`.

The cost includes billing increments and minimums, unused time of monthly offers, disks, and work lost to spot
interruptions. `--why` shows the reason for each offer that was not chosen.

\b
Examples:
  tera plan vgg16 --batch 256 --epochs 90 --samples 1281167 --deadline 7d --budget 500
  tera plan --memory-total-min 48 --gpus 2-4 --hours-per-month 200
  tera plan resnet50 --batch 128 --epochs 90 --samples 1281167 --deadline 6h --instances 1-8
  tera plan resnet50 --global-batch 256 --epochs 90 --samples 1.28M --deadline friday --budget '$100'
  tera plan llama-8b --batch 1 --seq 2048 --precision bf16 --lora-rank 16 --steps 10k --gpu A100 --gpu H100
  tera plan --gpus 1 --hours 100 --budget 200
  tera plan --hours-per-month 5 --disk 50 --explain
"""


class _Plan(DefaultGroup):
    commands_by_name: ClassVar = {
        "buy-or-rent": ("teraflock.cli.plan.buy_or_rent", "Compare buying a server with renting"),
        "server": ("teraflock.cli.plan.server", "List, add and remove servers you own, with their cost"),
    }


@click.command("plan", cls=DefaultCommand, help=HELP)
@click.argument("model", required=False, shell_complete=complete_model)
@click.option("--batch", type=int, help="Samples per step on each GPU.")
@click.option("--global-batch", type=int, help="Samples per step on all GPUs together, instead of `--batch`.")
@click.option("--seq", type=int, help="Tokens per sample.")
@click.option("--image-size", type=int, help="Width and height of images, in pixels.")
@click.option(
    "--precision",
    default="fp32",
    show_default=True,
    help="fp32, tf32, amp-bf16, amp-fp16, bf16, fp16 or fp8. amp-bf16 is autocast over fp32 weights, which Hugging Face"
    " calls bf16=True; with bf16 the weights and the optimizer's state are in bf16 too.",
    shell_complete=complete_precision,
)
@click.option("--optimizer", default=None, help="sgd, adam, adamw, adafactor or none.")
@click.option("--gradient-checkpointing", is_flag=True, help="Recompute activations in the backward pass.")
@click.option("--lora-rank", type=int, help="Train only LoRA matrices of this rank.")
@click.option("--lora-targets", help="Layers with LoRA: query-value, or all linear layers.")
@click.option("--lora-dtype", help="fp32: LoRA matrices in float32, as peft makes them by default.")
@click.option("--load-in", help="4bit or 8bit: weights as bitsandbytes stores them, in NF4 or as LLM.int8.")
@click.option("--accumulate", type=int, help="Passes of `--batch` samples for each step of the optimizer.")
@click.option(
    "--compile", is_flag=True, help="Run the model under `torch.compile`. Compiling itself is not included."
)
@click.option("--task", default="train", show_default=True, help="train or infer.")
@click.option("--kv-cache", is_flag=True, help="Keep a key-value cache of all tokens during inference.")
@click.option(
    "--shard", is_flag=True, help="Shard weights, gradients and optimizer state across GPUs (FSDP, ZeRO 3)."
)
@click.option(
    "--zero",
    type=int,
    help="ZeRO stage: shard optimizer state (1), also gradients (2), also weights (3).",
)
@click.option(
    "--tensor-parallel",
    type=int,
    metavar="N",
    help="Split each transformer layer across N GPUs of a machine. `--batch` is then per group of N GPUs. Computed, not"
    " measured.",
)
@click.option("--offload", is_flag=True, help="Run the optimizer step on the host and keep its state there.")
@click.option(
    "--steps",
    type=LargeNumber(),
    help="Steps to run. N GPUs do N times the work per step with `--batch`, and the same with `--global-batch`.",
)
@click.option("--epochs", type=float, help="Passes over the data, with `--samples`.")
@click.option(
    "--samples", type=LargeNumber(), help="Samples in the data, with `--epochs`: `1281167` or `1.28M`."
)
@click.option(
    "--interruptions", type=float, metavar="PER_HOUR", help="Expected interruptions of a spot machine."
)
@click.option("--checkpoint", type=float, metavar="SECONDS", help="Time to write a checkpoint.")
@click.option(
    "--restart", type=float, metavar="SECONDS", help="Time to get another machine after an interruption."
)
@click.option(
    "--gpu",
    multiple=True,
    metavar="NAME",
    help="Only this GPU model, in any spelling. Can be repeated: any of them will do.",
    shell_complete=complete_gpu,
)
@click.option("--hours", type=float, help="Plan a machine for this many hours, once.")
@click.option("--hours-per-month", type=float, help="Plan a machine for this many hours every month.")
@click.option(
    "--gpus", default="1+", show_default=True, metavar="N", help="Total number of GPUs: `4`, `2-8` or `4+`."
)
@click.option(
    "--instances",
    default="1",
    show_default=True,
    metavar="N",
    help="Number of machines of one offer: `4` or `1-8`.",
)
@click.option(
    "--network",
    type=float,
    metavar="GBPS",
    help="Bandwidth between machines, in Gbit/s.  [default: as published by the provider, else 10]",
)
@click.option("--memory-min", metavar="GB", help="Minimum memory of each GPU.")
@click.option("--memory-total-min", metavar="GB", help="Minimum memory of all GPUs together.")
@click.option(
    "--deadline",
    metavar="TIME",
    help="Finish by then in 9 of 10 cases: `36h`, `5d`, `2w`, `friday`, `2026-11-20` or `2026-11-20T18:00` (UTC).",
)
@click.option("--budget", metavar="AMOUNT", help="Maximum cost: `200`, `$200` or `200 EUR`.")
@click.option(
    "--provider",
    multiple=True,
    metavar="NAME",
    help="Only this provider. Can be repeated.",
    shell_complete=complete_provider,
)
@click.option(
    "--region",
    multiple=True,
    metavar="PLACE",
    help="Only there: `EU`, `europe`, `US`, `germany`, `us-east-1`, `frankfurt`. Can be repeated.",
    shell_complete=complete_region,
)
@click.option(
    "--source",
    multiple=True,
    metavar="NAME",
    help="Only offers of this imported catalog. Can be repeated.",
    shell_complete=complete_source,
)
@click.option(
    "--available",
    is_flag=True,
    help="Only what `tera offers refresh PROVIDER` found in the last 15 minutes, and your own servers.",
)
@click.option(
    "--country", multiple=True, metavar="NAME", help="Only this country: `DE`, `Germany`. Can be repeated."
)
@click.option("--not-in", multiple=True, metavar="PLACE", help="Nowhere in this place. Can be repeated.")
@click.option(
    "--newer-than",
    metavar="AGE",
    help="Only prices confirmed since: `90d`, `6m`, `2026-01-31`.",
)
@click.option("--slices", is_flag=True, help="Include parts of GPUs.")
@click.option(
    "--mode", multiple=True, type=Suggested(MODES), help="Only this purchase mode. Can be repeated."
)
@click.option(
    "--disk", type=float, default=0.0, metavar="GB", help="Size of a disk that is kept the whole time."
)
@click.option(
    "--disk-price",
    multiple=True,
    metavar="[PROVIDER=]AMOUNT",
    help="Your price per GB of disk and month, in `--currency`, at one provider or at all. Can be repeated."
    "  [default: the provider's]",
)
@click.option(
    "--egress",
    type=float,
    default=0.0,
    metavar="GB",
    help="Outgoing traffic: in total, or per month with `--hours-per-month`.",
)
@click.option(
    "--egress-price",
    metavar="AMOUNT",
    help="Price per GB of outgoing traffic, in `--currency`.  [default: the provider's]",
)
@click.option("--address", is_flag=True, help="Include a public IPv4 address for each machine.")
@click.option(
    "--currency",
    default="USD",
    show_default=True,
    metavar="CODE",
    help="Currency of the plan.",
    shell_complete=complete_currency,
)
@click.option(
    "--sort", type=Suggested(SORTS), default="cost", show_default=True, help="Sort choices by this."
)
@click.option("--top", type=int, default=TOP, show_default=True, help="Number of choices to show.")
@click.option(
    "--why", is_flag=True, help="List what was not chosen, with reasons; with `--json`, each offer."
)
@click.option("--explain", is_flag=True, help="Show how the cost of the first choice is computed.")
@click.option("--json", "as_json", is_flag=True, help="Print the whole plan as JSON.")
def plain(why: bool, explain: bool, as_json: bool, **words: Any) -> None:
    asked = PlanWords(**words)
    top = asked.top
    with Local() as local:
        servers = read_servers(local.home)
        answered = answer(asked, local.database(), local.rates, local.clock, servers=servers)
        plan, wish, on = answered.plan, answered.wish, answered.on
        at = [rate_text(other, wish.currency, local.rates, on) for other in answered.exchanged]
        if as_json:
            whole = asdict(shape_plan(answered, top=top, rates=local.rates))
            if why:
                each = left_out(local.database(), plan, wish, servers=servers)
                rejected = shape_left_out(each, currency=wish.currency, rates=local.rates, on=on)
                whole["rejected"] = tuple(rejected)
            write_json(whole)
    if not as_json:
        print_plan(plan, wish, answered.assumptions, top=top, why=why, explain=explain)
        if answered.deadline:
            remark(f"Deadline: {answered.deadline:%a %Y-%m-%d %H:%M} UTC")
        for sentence in at:
            remark(sentence)
    if answered.no_plan:
        raise answered.no_plan


command = _Plan("plan", plain)
