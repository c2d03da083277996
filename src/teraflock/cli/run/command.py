"""`tera run`: from a script to its result, on an instance of its own."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, get_args

import click

from teraflock.base.clock import SystemClock
from teraflock.base.errors import BadInput
from teraflock.base.quantities import bytes_text
from teraflock.cli.confirm import confirm
from teraflock.cli.connection import connected, mark_simulated
from teraflock.cli.lazy import DEFAULT, DefaultCommand, DefaultGroup
from teraflock.cli.options import LargeNumber, json_option, project_option, yes_option
from teraflock.cli.output import remark, write_json
from teraflock.cli.run.follow import finish, follow
from teraflock.cli.run.plan import as_data, planned, show
from teraflock.cli.run.request import forgotten_file, given_words, request_from
from teraflock.cli.run.workdir import Packed, pack
from teraflock.cli.shape_options import shape_options
from teraflock.cli.table import printable, write_list
from teraflock.cli.waiting import phases
from teraflock.wire.instance import ModeWord
from teraflock.wire.run import SweepRequest
from teraflock.words.run import fields

if TYPE_CHECKING:
    from teraflock.client import Client
    from teraflock.wire.run import RunAnswer, RunRequest

HELP: Final = """Run a script or a command on an instance of its own, and bring back its results.

Teraflock launches an instance, prepares it, copies your files, starts the command, prints its output, keeps its
checkpoints and outputs, deletes the instance and shows the bill. If the instance is lost, the command starts again
from its last checkpoint. The exit code is that of the command. Ending `tera` changes nothing: `tera run logs -f`
follows the run again.

Options of `tera` come before `--`, arguments of the script after it. The command finds these variables:
$TERA_CHECKPOINTS (files that it renames into this folder survive), $TERA_OUTPUTS, $TERA_CHECKPOINT_EVERY (seconds),
$TERA_ATTEMPT, and `teraflock.progress(step, of)`.

A file `tera.yaml` can hold the same options; `tera run init` writes one.

\b
Examples:
  tera run train.py --gpu A100 --requirements requirements.txt
  tera run train.py --gpus 2 --gpu V100 --deadline friday --budget 40 -- --lr 1e-3
  tera run --cpu-only --workdir . -- make test
  tera run train.py --secret WANDB_API_KEY --detach --yes
  tera run train.py --gpu V100 --sweep lr=1e-3,1e-4 --sweep batch=32,64 --budget 40
  tera run --nodes 2 --gpu V100 --gpus 8 --workdir . -- torchrun train.py
  tera run logs -f heron-3f2a
"""


class _Run(DefaultGroup):
    commands_by_name: ClassVar = {
        "show": ("teraflock.cli.run.verbs:show", "Show one run: progress, costs, checkpoints, estimate"),
        "logs": ("teraflock.cli.run.verbs:logs", "Show the output of a run; `-f` follows it"),
        "attach": ("teraflock.cli.run.verbs:attach", "Follow a run again, as `tera run` does"),
        "cancel": ("teraflock.cli.run.verbs:cancel", "Cancel runs; their checkpoints are kept"),
        "retry": ("teraflock.cli.run.verbs:retry", "Continue a failed or cancelled run"),
        "cp": ("teraflock.cli.run.verbs:cp", "Copy the outputs or a checkpoint of a run"),
        "init": ("teraflock.cli.run.file:init", "Write a `tera.yaml` for this folder"),
    }

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Whatever is no subcommand is the script."""
        is_script = args[0] not in self.commands_by_name and args[0] != DEFAULT
        return (DEFAULT, self._default, args) if is_script else super().resolve_command(ctx, args)


class _RunCommand(DefaultCommand):
    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep what follows `--` apart: it belongs to the script, or is the command."""
        at = args.index("--") if "--" in args else len(args)
        ctx.meta["after"] = tuple(args[at + 1 :])
        ctx.meta["has_dashes"] = at < len(args)
        try:
            return super().parse_args(ctx, args[:at])
        except click.NoSuchOption as error:
            raise BadInput(
                f"Unknown option `{error.option_name}`",
                hint="Options of your script come after `--`: `tera run train.py -- --lr 0.1`",
            ) from None


@click.command(cls=_RunCommand, help=HELP)
@click.argument("script", required=False, metavar="[SCRIPT]")
@click.argument("more", nargs=-1, metavar="[-- ARGUMENTS...]")
@click.option("--name", metavar="NAME", help="The name of the run. [default: a generated name]")
@shape_options
@click.option("--cpu-only", is_flag=True, help="Run without a GPU.")
@click.option("--image", metavar="NAME", help="The image. [default: base]")
@click.option("--site", metavar="NAME", help="Run at this site. [default: any own host]")
@click.option("--provider", metavar="NAME", help="Rent at this provider. Needs --type or --gpu.")
@click.option("--type", metavar="TYPE", help="With --site or --provider: the machine type to rent.")
@click.option("--region", metavar="NAME", help="The region to rent in.")
@click.option("--burst", is_flag=True, help="Use own hosts while they have room, and rent otherwise.")
@click.option("--mode", type=click.Choice(list(get_args(ModeWord))), help="The purchase mode.")
@click.option("--bid", metavar="PRICE", help="With --mode bid: the most you pay per hour, for each GPU.")
@click.option("--offer", metavar="ID", help="Rent this offer of `tera offers --json`, at its price at most.")
@click.option(
    "--workdir",
    metavar="FOLDER",
    help="The folder to upload, without what .gitignore and .teraignore list. [default: this one, with SCRIPT]",
)
@click.option("--setup", metavar="CMD", help="Shell commands that prepare the instance. Cached as an image.")
@click.option(
    "--requirements",
    metavar="FILE",
    help="Install this requirements file, or pyproject.toml, with pip. Cached.",
)
@click.option("--env", "environment", multiple=True, metavar="K=V", help="Set a variable. Can be repeated.")
@click.option(
    "--secret", "secrets", multiple=True, metavar="NAME",
    help="Pass a variable of yours, encrypted and never shown. Asked for if it is not set. Can be repeated.",
)  # fmt: skip
@click.option(
    "--data", multiple=True, metavar="NAME",
    help="Read this dataset under $TERA_DATA/NAME. Can be repeated. See `tera data`.",
)  # fmt: skip
@click.option("--outputs", metavar="FOLDER", help="Keep this folder at the end. [default: $TERA_OUTPUTS]")
@click.option("--checkpoints", metavar="FOLDER", help="Copy new files of this folder while it runs.")
@click.option("--keep", type=click.IntRange(1, 100), metavar="N", help="Checkpoints to keep. [default: 3]")
@click.option("--attempts", type=click.IntRange(1, 100), metavar="N", help="The most starts. [default: 10]")
@click.option(
    "--nodes", type=click.IntRange(1, 32), metavar="N",
    help="Run the command on N instances at the same time, all or none, with the variables of torchrun. [default: 1]",
)  # fmt: skip
@click.option(
    "--priority", type=click.IntRange(-100, 100), metavar="N",
    help="Among the launches of the project that wait for room. Higher ones start first. [default: 0]",
)  # fmt: skip
@click.option("--deadline", metavar="TIME", help="The deadline: `36h`, `friday`, `2026-11-20T18:00`.")
@click.option("--budget", metavar="AMOUNT", help="Stop it when it has cost this much.")
@click.option(
    "--hours",
    type=click.FloatRange(0, 1e6, min_open=True),
    metavar="N",
    help="How long you expect it to take.",
)
@click.option(
    "--steps", type=LargeNumber(), metavar="N", help="Steps of the script, to estimate time and cost."
)
@click.option(
    "--epochs",
    type=LargeNumber(),
    metavar="N",
    help="Instead of --steps, with --samples: passes over the data.",
)
@click.option("--samples", type=LargeNumber(), metavar="N", help="With --epochs: samples of one pass.")
@click.option(
    "--trace",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="A trace of the script. [default: it is traced, if PyTorch is here]",
)
@click.option(
    "--sweep", multiple=True, metavar="NAME=V1,V2,...",
    help="Run every combination of these values, with one budget over all. `{NAME}` in the arguments becomes a value;"
    " otherwise `--NAME VALUE` is added. Can be repeated. Implies --detach.",
)  # fmt: skip
@click.option("--detach", "-d", is_flag=True, help="Return as soon as the run is accepted.")
@click.option("--dry-run", is_flag=True, help="Show the plan, and start nothing.")
@yes_option
@project_option
@json_option
@click.pass_context
def start(
    ctx: click.Context,
    /,
    script: str | None,
    more: tuple[str, ...],
    detach: bool,
    dry_run: bool,
    yes: bool,
    project: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    if more:
        raise BadInput(
            f"Unexpected argument `{more[0]}`",
            hint=f"Arguments of the script come after `--`: `-- {more[0]}`",
        )
    words = given_words(script, ctx.meta["after"], options)
    files = pack(Path(words.workdir)) if words.workdir else None
    if forgotten := forgotten_file(words):
        remark(f"note: `{printable(forgotten)}` is not uploaded\nhint: Upload this folder with `--workdir .`")
    if not yes and not as_json and sys.stdin.isatty():
        from teraflock.cli.run.estimate import with_steps

        words = with_steps(words)
    with connected(project) as client:
        request = request_from(words, files.digest if files else None, SystemClock().now())
        plan = planned(client, request, words)
        if dry_run:
            mark_simulated(client)
            write_json(as_data(plan, files)) if as_json else show(plan, files)
            return
        if not yes:
            show(plan, files)
            confirm(
                f"Start these {plan.runs} runs?" if plan.runs > 1 else "Start this run?", "Starting a run"
            )
        if words.sweep:
            _upload(client, files)
            made = client.runs.create_sweep(SweepRequest(run=plan.request, grid=words.sweep))
            mark_simulated(client)
            write_list(made, fields(SystemClock().now()), as_json=as_json, empty="")
            return
        run = _started(client, plan.request, files)
        if detach:
            write_json(run) if as_json else click.echo(f"{run.name}: {run.state}")
            return
        mark_simulated(client)
        remark(f"Run `{run.name}` is accepted. Ctrl-C does not stop it")
        finish(follow(client, run.name, err=as_json), as_json=as_json)


command = _Run("run", start, help=HELP)


def _started(client: "Client", request: "RunRequest", files: Packed | None) -> "RunAnswer":
    _upload(client, files)
    return client.runs.create(request)


def _upload(client: "Client", files: Packed | None) -> None:
    if files is not None:
        with phases() as line:
            client.runs.upload_changes(
                files.digest,
                files.content,
                files.pieces,
                lambda sent, size: line(f"uploading: {bytes_text(sent)} of {bytes_text(size)}"),
            )
