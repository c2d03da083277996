"""`tera plan`: the cheapest way to have what is needed, and why not the others."""

import gc
from typing import Any, ClassVar, Final

import click
from msgspec.structs import asdict

from teraflock.app.local import Local
from teraflock.app.owned_servers import read_servers
from teraflock.cli.lazy import LazyGroup
from teraflock.cli.offer.filters import Suggested
from teraflock.cli.offer.footer import rate_text
from teraflock.cli.output import remark, write_json
from teraflock.cli.plan.telling import tell
from teraflock.offer.model import MODES
from teraflock.plan.answer import answer
from teraflock.plan.model import SORTS
from teraflock.plan.service import left_out
from teraflock.plan.words import TOP, PlanWords
from teraflock.wire.plan import shape_left_out, shape_plan

PLAIN: Final = "for"  # the name of planning itself among the commands of the group; nobody writes it

HELP: Final = """From a job to the cheapest way to finish it, over all offers and own servers.

MODEL is a name of the zoo or a trace, as in `tera estimate`; or plan a plain machine with `--hours` or
`--hours-per-month`.

What is paid is more than price × hours: billing steps and minimums, whole months of monthly offers with what goes
unused, disks, and on spot the work that is lost. Every other offer has one reason why it was not chosen (`--why`).

\b
Examples:
  tera plan vgg16 --batch 256 --epochs 90 --samples 1281167 --deadline 7d --budget 500
  tera plan --memory-total-min 48 --gpus 2-4 --hours-per-month 200
  tera plan resnet50 --batch 128 --epochs 90 --samples 1281167 --deadline 6h --instances 1-8
  tera plan --gpus 1 --hours 100 --deadline 7d --budget 200
  tera plan --hours-per-month 5 --disk 50 --explain
"""


class _Plan(LazyGroup):
    """`tera plan …` plans. Those named below are commands of their own, loaded when they are called."""

    commands_by_name: ClassVar = {
        "buy-or-rent": ("teraflock.cli.plan.buy_or_rent", "At which use an own server pays"),
        "server": ("teraflock.cli.plan.server", "Servers you own, and what an hour of them costs"),
    }

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not (args and args[0] in self.commands_by_name) and args[:1] not in (["--help"], ["-h"]):
            args = [PLAIN, *args]
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        return (PLAIN, plain, args[1:]) if args[0] == PLAIN else super().resolve_command(ctx, args)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        plain.format_help(click.Context(plain, info_name=ctx.command_path), formatter)
        self.format_commands(ctx, formatter)


@click.command(PLAIN, help=HELP)
@click.argument("model", required=False)
@click.option("--batch", type=int, help="Samples per step on each GPU.")
@click.option(
    "--global-batch", type=int, help="Samples per step on all GPUs together, in place of `--batch`."
)
@click.option("--seq", type=int, help="Tokens per sample.")
@click.option("--image-size", type=int, help="Pixels on a side.")
@click.option(
    "--precision", default="fp32", show_default=True, help="fp32, tf32, amp-bf16, amp-fp16, bf16, fp16."
)
@click.option("--optimizer", default=None, help="sgd, adam, adamw, adafactor, or none.")
@click.option("--gradient-checkpointing", is_flag=True, help="Recompute activations in the backward pass.")
@click.option("--lora-rank", type=int, help="Train LoRA matrices of this rank, and nothing else.")
@click.option("--task", default="train", show_default=True, help="train or infer.")
@click.option("--kv-cache", is_flag=True, help="Inference that keeps keys and values of all tokens.")
@click.option(
    "--shard", is_flag=True, help="GPUs split weights, gradients and optimizer state (FSDP, ZeRO 3)."
)
@click.option(
    "--zero",
    type=int,
    help="GPUs split optimizer state (1), gradients too (2), weights too (3).",
)
@click.option(
    "--tensor-parallel",
    type=int,
    metavar="N",
    help="Groups of N GPUs of a machine divide each layer of a transformer; `--batch` then counts the samples of a"
    " group. Computed, not measured.",
)
@click.option("--offload", is_flag=True, help="The optimizer's step runs on the host, which keeps its state.")
@click.option(
    "--steps",
    type=float,
    help="Steps to run. With `--batch`, N GPUs do N times the work in a step; with `--global-batch` the same.",
)
@click.option("--epochs", type=float, help="With --samples: passes over the data.")
@click.option("--samples", type=float, help="With --epochs: samples in the data.")
@click.option(
    "--interruptions", type=float, metavar="PER_HOUR", help="How often a spot machine is taken away."
)
@click.option("--checkpoint", type=float, metavar="SECONDS", help="How long writing a checkpoint takes.")
@click.option("--restart", type=float, metavar="SECONDS", help="How long getting another machine takes.")
@click.option("--hours", type=float, help="A machine for so many hours, once.")
@click.option("--hours-per-month", type=float, help="A machine for so many hours of every month.")
@click.option("--gpus", default="1+", show_default=True, metavar="N", help="GPUs in all: `4`, `2-8` or `4+`.")
@click.option(
    "--instances", default="1", show_default=True, metavar="N", help="Machines of one offer: `4` or `1-8`."
)
@click.option(
    "--network",
    type=float,
    metavar="GBPS",
    help="Between those machines, in Gbit/s.  [default: what the maker of the instance type publishes, else 10]",
)
@click.option("--memory-min", metavar="GB", help="Memory of each GPU, at least.")
@click.option("--memory-total-min", metavar="GB", help="Memory of all GPUs together, at least.")
@click.option(
    "--deadline", metavar="TIME", help="`36h`, `7d`, or a date: by then it is done, nine times of ten."
)
@click.option("--budget", metavar="AMOUNT", help="At most so much: `200`, or `200USD`.")
@click.option("--provider", multiple=True, metavar="NAME", help="A cloud; may be repeated.")
@click.option("--region", multiple=True, metavar="TEXT", help="Part of a region's name; may be repeated.")
@click.option("--mode", multiple=True, type=Suggested(MODES), help="How it is bought; may be repeated.")
@click.option("--disk", type=float, default=0.0, metavar="GB", help="A disk of this size, kept throughout.")
@click.option(
    "--egress", type=float, default=0.0, metavar="GB", help="What leaves the cloud, with `--egress-price`."
)
@click.option("--egress-price", metavar="AMOUNT", help="Price of a GB that leaves, in `--currency`.")
@click.option("--currency", default="USD", show_default=True, metavar="CODE", help="Currency of the plan.")
@click.option("--sort", type=Suggested(SORTS), default="cost", show_default=True, help="What is best.")
@click.option("--top", type=int, default=TOP, show_default=True, help="Show the best so many.")
@click.option(
    "--why", is_flag=True, help="List all that was not chosen, with its reason; with --json offer by offer."
)
@click.option("--explain", is_flag=True, help="The arithmetic of the first choice, in full.")
@click.option("--json", "as_json", is_flag=True, help="The whole plan as JSON on stdout.")
def plain(why: bool, explain: bool, as_json: bool, **words: Any) -> None:
    gc.disable()  # one plan and out: collecting the replay's blocks would only cost the cold start
    asked = PlanWords(**words)
    top = asked.top
    with Local() as local:
        servers = read_servers(local.home)
        answered = answer(asked, local.database(), local.rates, local.clock, servers=servers)
        plan, wish, on = answered.plan, answered.wish, answered.on
        exchanged = sorted({choice.shape.currency for choice in plan.choices[:top]} - {wish.currency})
        at = [rate_text(other, wish.currency, local.rates, on) for other in exchanged]
        if as_json:
            whole = asdict(shape_plan(answered, top=top, rates=local.rates))
            if why:
                each = left_out(local.database(), plan, servers=servers, regions=asked.region)
                told = shape_left_out(each, currency=wish.currency, rates=local.rates, on=on)
                whole["rejected"] = tuple(told)
            write_json(whole)
    if not as_json:
        tell(plan, wish, answered.assumptions, top=top, why=why, explain=explain)
        for sentence in at:
            remark(sentence)
    if answered.no_plan:
        raise answered.no_plan


command = _Plan("plan")
