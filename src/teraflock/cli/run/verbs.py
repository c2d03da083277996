"""`tera runs` and the subcommands of `tera run` for existing runs: show, logs, cancel, retry, cp."""

from contextlib import suppress
from pathlib import Path
from tarfile import ReadError
from typing import TYPE_CHECKING, Final

import click

from teraflock.base.clock import SystemClock
from teraflock.base.errors import Refused
from teraflock.cli.connection import connected, in_project, mark_simulated
from teraflock.cli.facts import write_facts
from teraflock.cli.instance.archive import receive
from teraflock.cli.options import project_option
from teraflock.cli.output import emphasised, remark, write_json, write_output
from teraflock.cli.parse_money import parse_amount
from teraflock.cli.run.follow import exit_code_of, finish, follow
from teraflock.cli.table import write_list
from teraflock.client.errors import NoAnswer
from teraflock.words.run import facts, fields, state_text

if TYPE_CHECKING:
    from teraflock.client import Client

RUNS_HELP: Final = """List the runs of a project, newest first.

\b
Examples:
  tera runs
  tera runs --active
  tera runs --sweep rates
  tera runs --json
"""


@click.command(help=RUNS_HELP)
@click.option("--active", is_flag=True, help="Only runs that are not over.")
@click.option("--sweep", metavar="NAME", help="Only runs of this sweep.")
@in_project
def runs(client: "Client", active: bool, sweep: str | None, as_json: bool) -> None:
    found = [each for each in client.runs.list(active=active) if sweep in (None, each.sweep)]
    empty = "No runs yet. Start one with `tera run SCRIPT`"
    write_list(found, fields(SystemClock().now()), as_json=as_json, empty=empty)


@click.command(help="Show one run: its state, progress, costs, checkpoints, and how good the estimate was.")
@click.argument("run")
@in_project
def show(client: "Client", run: str, as_json: bool) -> None:
    found = client.runs.get(run)
    if as_json:
        write_json(found)
        return
    click.echo(emphasised(f"{found.name}: {state_text(found)}"))
    write_facts(facts(found, SystemClock().now()))


@click.command(
    help="Show the output of a run. With `-f`, print new output until it ends, then use its exit code."
)
@click.argument("run")
@click.option("--follow", "-f", "is_followed", is_flag=True, help="Print new output until the run is over.")
@click.option("--tail", type=click.IntRange(0), metavar="N", help="Only the last N lines.")
@click.option("--node", type=click.IntRange(0), default=0, metavar="N", help="Of this node. [default: 0]")
@in_project
def logs(client: "Client", run: str, is_followed: bool, tail: int | None, node: int, as_json: bool) -> None:
    text, offset, seen = "", 0, client.runs.log(run, node=node)
    is_read = as_json or not is_followed or tail is not None  # otherwise `follow` prints it from the start
    while is_read and seen.text:
        text, offset = text + seen.text, seen.next
        seen = client.runs.log(run, offset, node)
    if as_json:
        write_json({"text": text, "state": seen.state, "exit_code": seen.exit_code})
        return
    mark_simulated(client)
    lines = text.splitlines(keepends=True)
    write_output("".join(lines[len(lines) - tail :] if tail is not None and tail < len(lines) else lines))
    if is_followed:
        raise SystemExit(exit_code_of(follow(client, run, offset, node=node)))


@click.command(
    help="Follow a run again, as `tera run` does: print what it prints from now on, then use its exit code."
    " Ctrl-C does not stop it."
)
@click.argument("run")
@project_option
def attach(run: str, project: str | None) -> None:
    with connected(project) as client:
        found = client.runs.get(run)
        mark_simulated(client)
        remark(f"Run `{found.name}` is {found.state}. `tera run logs {found.name}` has its earlier output")
        finish(follow(client, found.id, found.log_bytes, name=found.name))


@click.command(help="Cancel runs. The command gets SIGTERM and 30 seconds; checkpoints and outputs are kept.")
@click.argument("names", metavar="RUN...", nargs=-1, required=True)
@in_project
def cancel(client: "Client", names: tuple[str, ...], as_json: bool) -> None:
    done = [client.runs.cancel(name) for name in names]
    if as_json:
        write_json(done)
    else:
        for run in done:
            click.echo(f"{run.name}: {state_text(run)}")


@click.command(help="Continue a failed or cancelled run from its last checkpoints.")
@click.argument("run")
@click.option("--budget", metavar="AMOUNT", help="A new budget, over all attempts. [default: the old one]")
@click.option("--detach", "-d", is_flag=True, help="Do not follow its output.")
@in_project
def retry(client: "Client", run: str, budget: str | None, detach: bool, as_json: bool) -> None:
    micros = None if budget is None else parse_amount(budget, at_least=1)
    again = client.runs.retry(run, budget_micros=micros)
    if as_json:
        write_json(again)
    elif detach:
        click.echo(f"{again.name}: {state_text(again)}")
    else:
        mark_simulated(client)
        finish(follow(client, again.id, again.log_bytes, name=again.name))


@click.command(help="Copy the outputs of a run, or one of its checkpoints, to a folder on this machine.")
@click.argument("run")
@click.argument("target", type=click.Path(path_type=Path), default=".", metavar="[FOLDER]")
@click.option("--checkpoint", metavar="NAME", help="Copy this checkpoint. `tera run show` lists them.")
@project_option
def cp(run: str, target: Path, checkpoint: str | None, project: str | None) -> None:
    with connected(project) as client:
        pieces = client.runs.checkpoint(run, checkpoint) if checkpoint else client.runs.outputs(run)
        try:
            with suppress(FileExistsError):
                target.mkdir(parents=True)
            receive(pieces, target, recursive=True)
        except (ReadError, NoAnswer) as error:
            raise Refused(
                "The copy was interrupted: it is incomplete", hint="Run the command again"
            ) from error
    remark(f"Copied to `{target}`")
