"""`tera launch`: new instances."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, get_args

import click

from teraflock.app.home import home
from teraflock.base.errors import BadInput
from teraflock.cli.connection import connected
from teraflock.cli.instance import plan_file, ssh_files
from teraflock.cli.instance.costs import price_of
from teraflock.cli.instance.follow import follow, has_ended
from teraflock.cli.instance.list import write_instances
from teraflock.cli.money_words import parse_amount
from teraflock.cli.options import json_option, project_option, wait_option, yes_option
from teraflock.cli.output import called, remark, write_json
from teraflock.cli.shape_options import shape_from, shape_options
from teraflock.cli.waiting import NotDone, wait_for
from teraflock.cli.words import check_name, parse_command, parse_duration_seconds, parse_pairs, unquoted_shell
from teraflock.wire.instance import (
    INSTANCES_PER_LAUNCH_MAX,
    TIME_LIMIT_SECONDS_MAX,
    TIME_LIMIT_SECONDS_MIN,
    USER_DATA_BYTES_MAX,
    AccessWord,
    InstanceAnswer,
    LaunchRequest,
    ModeWord,
    RestartPolicyWord,
)
from teraflock.wire.shape import ShapeRequest
from teraflock.words.instance import state_text

if TYPE_CHECKING:
    from teraflock.client import Client

CUT_OFF: Final = 124
"""The exit code for a command that was ended from outside, as `timeout` has it."""
HELP: Final = """New instances: whole GPUs, real limits of processors, memory and disk, a log-in of their own.

What is left out is filled in: one card if a card is named, processors and memory in proportion to the cards, the
image `base`, your SSH key (`~/.ssh/id_ed25519.pub` or the like; one is made where you have none).

With `--wait`, a command's log is printed as it is written and its exit code becomes that of `tera`; a user-data
script is waited for as well. With `--rm` the instance is deleted when its command ends or its time limit is reached;
its log and exit code can be read by its name for 7 days (`tera logs`, `tera show`).

A command is run as the words it has, without a shell. `--shell` runs the text of `--command` with `sh -c`.

\b
Examples:
  tera launch --name web --vcpus 2 --ram 4 --wait
  tera launch --name train --gpu V100 --gpus 2 --image pytorch --wait
  tera launch --name lab --image jupyter --access jupyter --wait
  tera launch --name job --gpu A100 --wait -- python3 train.py --epochs 90
  tera launch --rm --time-limit 2h --wait --shell --command 'make && ./run'
  tera launch --name node --instances 8 --label team=vision
  tera launch --site sky --type sim-1xv100 --mode spot --restart-policy elsewhere
  tera plan --gpus 4 --hours 100 --json > plan.json; tera launch --plan plan.json --wait
"""


@click.command(help=HELP)
@click.option("--name", metavar="NAME", help="The guest's host name as well. Left out: one is made.")
@shape_options
@click.option("--image", default="base", show_default=True, metavar="NAME", help="What it boots.")
@click.option(
    "--access",
    type=click.Choice(["ssh", "jupyter", "command"]),
    help="How it is used. [default: ssh; command where one is given]",
)
@click.option("--command", "line", metavar="TEXT", help="Runs this, keeps its log and exit code, and stops.")
@click.option("--shell", is_flag=True, help="Run the text of --command with `sh -c`.")
@click.option(
    "--time-limit",
    metavar="TIME",
    help="Stop it after this long: `90s`, `30m`, `2h`, `1d`. Counts from each start.",
)
@click.option("--rm", "removed", is_flag=True, help="Delete it when its command ends or its time is up.")
@click.argument("words", nargs=-1, metavar="[-- COMMAND...]")
@click.option(
    "--user-data",
    type=click.Path(),
    metavar="FILE",
    help="A script with `#!`, run once at the first start; `-` is stdin.",
)
@click.option(
    "--key", "keys", multiple=True, metavar="KEY", help="A public SSH key or its file; may be repeated."
)
@click.option("--label", "labels", multiple=True, metavar="K=V", help="May be repeated.")
@click.option("--env", "environment", multiple=True, metavar="K=V", help="For the command; may be repeated.")
@click.option(
    "--instances", type=click.IntRange(1, INSTANCES_PER_LAUNCH_MAX), default=1, show_default=True, metavar="N"
)
@click.option(
    "--mode",
    type=click.Choice(list(get_args(ModeWord))),
    help="How it is paid: `spot` costs less and may be taken back; `bid` offers a price. [default: on-demand]",
)
@click.option("--spot", is_flag=True, help="The same as `--mode spot`.")
@click.option("--host", metavar="NAME", help="Place it on this host of our own.")
@click.option(
    "--site", default="", metavar="NAME", help="Run it at this site. [default: any of our own hosts]"
)
@click.option("--type", default="", metavar="TYPE", help="With --site: the machine type to rent.")
@click.option("--region", default="", metavar="REGION", help="With --type. [default: the cheapest with room]")
@click.option("--zone", default="", metavar="ZONE", help="With --type.")
@click.option("--bid", metavar="PRICE", help="With --mode bid: your offer for the machine, per hour.")
@click.option("--max-price", metavar="PRICE", help="With --type: rent nothing that costs more per hour.")
@click.option(
    "--restart-policy",
    type=click.Choice(list(get_args(RestartPolicyWord))),
    help="When it stops by itself or is lost: leave it, restart or re-create it in the same place, or anywhere."
    " Re-creating a rented machine costs money. [default: same-host; never if rented]",
)
@click.option("--plan", "plan", type=click.Path(), metavar="FILE", help="A choice of `tera plan --json`.")
@click.option("--choice", type=click.IntRange(1), metavar="N", help="With --plan: which. [default: best own]")
@click.option("--idempotency-key", default="", metavar="TEXT", help="The same one launches once only.")
@yes_option
@wait_option(default=False)
@project_option
@json_option
def command(
    project: str | None,
    wait: bool,
    timeout: float,
    as_json: bool,
    idempotency_key: str,
    yes: bool,
    **words: Any,
) -> None:
    request = request_from(words)
    with connected(project) as client:
        _mind_the_key(request)
        price = price_of(client, request, yes=yes)
        launched = client.instances.launch(request, idempotency_key=idempotency_key).items
        if price:
            remark(price)
        follows = wait and request.access == "command" and len(launched) == 1 and not as_json
        if follows:
            launched = (follow(client, launched[0], timeout),)
        elif wait:
            launched = _waited(client, launched, timeout)
    if as_json:
        write_json(launched if request.instances > 1 else launched[0])
    elif follows:
        remark(f"{launched[0].name}: {state_text(launched[0])}")
    else:
        write_instances(launched)
        _say_what_next(launched, waited=wait)
    _complain_of_failed(launched)
    if wait:
        _end_as(launched)


def _mind_the_key(request: LaunchRequest) -> None:
    if request.access == "ssh" and not request.authorized_keys:
        remark(
            "Launched without an SSH key: there is no `ssh-keygen` here to make one; `tera exec` needs none"
        )


def request_from(words: dict[str, Any]) -> LaunchRequest:
    """The request that the words make, checked as far as it can be here."""
    shape, labels = shape_from(words), parse_pairs(words["labels"], "--label")
    instances = words["instances"]
    if words["plan"]:
        shape, planned = _planned(shape, words["plan"], words["choice"])
        instances = max(instances, planned)
    elif words["choice"]:
        raise BadInput("`--choice` belongs to `--plan`")
    command = _command_from(words["line"], words["words"], shell=words["shell"])
    access: AccessWord = words["access"] or ("command" if command else "ssh")
    if access == "command" and not command:
        raise BadInput(
            "`--access command` needs a command", hint="`--command 'python3 train.py'`, or words after `--`"
        )
    if access != "command" and command:
        raise BadInput(f"`--access {access}` runs no command", hint="Leave `--access` out, or the command")
    return LaunchRequest(
        name=check_name(words["name"]) if words["name"] is not None else None,
        shape=shape,
        image=words["image"],
        access=access,
        command=command,
        user_data=read_user_data(words["user_data"]) if words["user_data"] else "",
        authorized_keys=ssh_files.public_keys(words["keys"], Path(home()), Path.home()),
        labels=labels,
        environment=parse_pairs(words["environment"], "--env"),
        mode=_mode(words["mode"], spot=words["spot"]),
        time_limit_seconds=_time_limit(words["time_limit"]),
        delete_when_done=_is_removed(words, access),
        instances=instances,
        host=words["host"],
        site=words["site"],
        type=words["type"],
        region=words["region"],
        zone=words["zone"],
        bid_micros_per_hour=parse_amount(words["bid"]) if words["bid"] else None,
        max_price_micros_per_hour=parse_amount(words["max_price"]) if words["max_price"] else None,
        restart_policy=words["restart_policy"],
    )


def _mode(mode: ModeWord | None, *, spot: bool) -> ModeWord:
    if spot and mode not in (None, "spot"):
        raise BadInput(f"`--spot` and `--mode {mode}` contradict each other", hint="Leave one of them out")
    return "spot" if spot else mode or "on-demand"


def _planned(shape: ShapeRequest, path: str, rank: int | None) -> tuple[ShapeRequest, int]:
    """The shape of a plan's choice, and on how many machines it works."""
    if shape.name or shape.gpu or shape.gpus is not None:
        raise BadInput("`--plan` says which cards: leave `--gpu`, `--gpus` and `--shape` out")
    choice = plan_file.choose(plan_file.read_plan(path), rank)
    planned = plan_file.shape_of(choice)
    remark(f"From the plan: {planned.gpus}× {planned.gpu}, as `{plan_file.server_of(choice)}` has them")
    whole = ShapeRequest(
        gpu=planned.gpu,
        gpus=planned.gpus,
        vcpus=shape.vcpus,
        ram_bytes=shape.ram_bytes,
        disk_bytes=shape.disk_bytes,
    )
    return whole, choice.instances


def _time_limit(text: str | None) -> int | None:
    if text is None:
        return None
    seconds = parse_duration_seconds(text, "--time-limit")
    if not TIME_LIMIT_SECONDS_MIN <= seconds <= TIME_LIMIT_SECONDS_MAX:
        raise BadInput(
            f"`--time-limit {text}` is not possible",
            hint=f"From 1 s to {TIME_LIMIT_SECONDS_MAX // 86_400} days",
        )
    return seconds


def _is_removed(words: dict[str, Any], access: AccessWord) -> bool:
    if words["removed"] and access != "command" and words["time_limit"] is None:
        raise BadInput(
            "`--rm` needs a command or `--time-limit`: without one the instance would never be deleted",
            hint="`tera launch --rm -- python3 train.py`, or `--time-limit 2h`",
        )
    return bool(words["removed"])


def _command_from(line: str | None, words: tuple[str, ...], *, shell: bool) -> tuple[str, ...]:
    if line is not None and words:
        raise BadInput("`--command` and words after `--` are two commands", hint="Leave one out")
    if shell and line is None:
        raise BadInput("`--shell` belongs to `--command`", hint="`--shell --command 'a.py && b.py'`")
    if line is None:
        return words
    if not line.strip():  # a variable that is not set: an instance without a command would run on and cost
        raise BadInput("`--command` is empty", hint="Leave it out for an instance to log in to")
    if shell:
        return ("sh", "-c", line)
    if found := unquoted_shell(line):
        remark(
            f"note: `--command` runs without a shell, so `{found}` means nothing special; add `--shell` to use one"
        )
    return parse_command(line)


def read_user_data(path: str) -> str:
    """Read no more than may be sent: a file of 10 MB is refused without reading it to the end."""
    try:
        with click.open_file(path, "rb") as file:
            content: bytes = file.read(USER_DATA_BYTES_MAX + 1)
    except OSError as error:
        raise BadInput(f"The user-data `{path}` cannot be read: {error.strerror}") from None
    if len(content) > USER_DATA_BYTES_MAX:
        raise BadInput(
            f"The user-data `{path}` has more than {USER_DATA_BYTES_MAX >> 10} KB",
            hint="Let it fetch what is large, or copy it in later with `tera cp`",
        )
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        raise BadInput(f"The user-data `{path}` is no text in UTF-8") from None
    if not text.startswith("#!"):
        raise BadInput(
            f"The user-data `{path}` is not a script: its first line must start with `#!`",
            hint="Start it with `#!/bin/sh` or `#!/usr/bin/python3`; `#cloud-config` is not supported",
        )
    return text


def _waited(
    client: "Client", launched: Sequence[InstanceAnswer], seconds_max: float
) -> tuple[InstanceAnswer, ...]:
    ids = [each.id for each in launched]
    return tuple(
        wait_for(lambda: [client.instances.get(each) for each in ids], _is_up, seconds_max=seconds_max)
    )


def _is_up(instance: InstanceAnswer) -> bool:
    """Running, with its user-data done; of a command: ended."""
    if instance.access == "command":
        return has_ended(instance)
    prepared = instance.user_data is None or instance.user_data.state == "done"
    return instance.state == "running" and instance.operation is None and prepared


def _say_what_next(launched: Sequence[InstanceAnswer], *, waited: bool) -> None:
    first = launched[0]
    if not waited:
        remark(f"\n`tera show {first.name}` says how far it is; `--wait` waits")
    elif first.jupyter:
        remark(f"\nJupyter: {first.jupyter.url}")
    elif first.access == "command":
        remark(f"\n`tera logs {first.name}` shows what it wrote")
    elif first.state == "running" and not first.simulated:
        remark(f"\nLog in: `{called()} ssh {first.name}`")


def _end_as(launched: Sequence[InstanceAnswer]) -> None:
    """End with the exit code of the command, and say how user-data ended. Of several, the first that failed counts."""
    for each in launched:
        if each.user_data and each.user_data.exit_code:
            raise NotDone(
                f"The user-data of `{each.name}` ended with exit code {each.user_data.exit_code}",
                hint=f"`tera logs {each.name} --user-data` shows its output; the instance is still there",
            )
    commands = [each for each in launched if each.access == "command"]
    for each in commands:
        if each.exit_code is None:
            remark(f"The command of `{each.name}` was stopped before it ended{_by_time_limit(each)}")
    codes = [CUT_OFF if each.exit_code is None else each.exit_code for each in commands]
    if code := next(filter(None, codes), 0):
        raise SystemExit(code if 0 < code < 256 else 255)


def _by_time_limit(instance: InstanceAnswer) -> str:
    return " or reached its time limit" if instance.time_limit_seconds is not None else ""


def _complain_of_failed(launched: Sequence[InstanceAnswer]) -> None:
    failed = [each for each in launched if each.state == "failed"]
    if failed:
        names = ", ".join(f"`{each.name}`" for each in failed)
        raise NotDone(
            f"{names} could not be launched: {failed[0].problem or 'the reason is unknown'}",
            hint=f"Nothing is left of it but its row; `tera delete --yes {failed[0].name}` removes that",
        )
