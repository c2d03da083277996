"""`tera launch`: launch instances."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, get_args

import click

from teraflock.app.home import home
from teraflock.base.errors import BadInput
from teraflock.base.limits import (
    INSTANCES_PER_LAUNCH_MAX,
    TIME_LIMIT_SECONDS_MAX,
    TIME_LIMIT_SECONDS_MIN,
    USER_DATA_BYTES_MAX,
)
from teraflock.base.names import check_name
from teraflock.cli.connection import connected
from teraflock.cli.instance import offer_file, plan_file, ssh_files
from teraflock.cli.instance.costs import price_of
from teraflock.cli.instance.follow import follow
from teraflock.cli.instance.launched import complain_of_failed, end_as, say_what_next, waited_for
from teraflock.cli.instance.list import write_instances
from teraflock.cli.options import json_option, project_option, wait_option, yes_option
from teraflock.cli.output import remark, write_json
from teraflock.cli.parse import parse_command, parse_duration_seconds, parse_pairs, unquoted_shell
from teraflock.cli.parse_money import parse_amount
from teraflock.cli.placement import (
    place_from,
    place_options,
    wait_until_launched,
    write_placement,
    write_waiting,
)
from teraflock.cli.shape_options import mode_from, shape_from, shape_options
from teraflock.wire import renting
from teraflock.wire.instance import AccessWord, LaunchRequest, ModeWord, RestartPolicyWord
from teraflock.wire.shape import ShapeRequest
from teraflock.words.instance import state_text

if TYPE_CHECKING:
    from teraflock.wire.offer import OfferShape

HELP: Final = """Launch instances with whole GPUs and their own vCPUs, memory and disk.

Defaults: one GPU if you name a GPU model, vCPUs and memory in proportion to the GPUs, the image `base`, and your SSH
key (such as `~/.ssh/id_ed25519.pub`; one is generated if you have none).

With `--wait`, `tera` prints the log of a command as it is written and exits with its exit code. It also waits for a
user-data script. With `--rm`, the instance is deleted when its command ends or its time limit is reached. You can read
its log and exit code by its name for 7 days (`tera logs`, `tera show`).

A command runs without a shell. `--shell` runs the text of `--command` with `sh -c`.

\b
Examples:
  tera launch --name web --vcpus 2 --ram 4 --wait
  tera launch --name train --gpu V100 --gpus 2 --image pytorch --wait
  tera launch --name lab --image jupyter --access jupyter --wait
  tera launch --name job --gpu A100 --wait -- python3 train.py --epochs 90
  tera launch --rm --time-limit 2h --wait --shell --command 'make && ./run'
  tera launch --name node --instances 8 --label team=vision
  tera launch --name gang --gpu A100 --gpus 8 --instances 4 --together --queue
  tera launch --name db --instances 3 --label app=db --not-with app=db --on disk=ssd
  tera launch --gpu A100 --gpus 4 --explain
  tera launch --site sky --type sim-1xv100 --mode spot
  tera launch --provider lambda --type gpu_1x_a10 --price-max 0.80
  tera launch --provider runpod --gpu L4 --burst
  tera plan --gpus 4 --hours 100 --json > plan.json
  tera launch --plan plan.json --wait
"""


@click.command(help=HELP)
@click.option(
    "--name", metavar="NAME", help="The name, also the guest's host name. [default: a generated name]"
)
@shape_options
@click.option(
    "--image",
    default="base",
    show_default=True,
    metavar="NAME",
    help="The image. `tera image list` lists them.",
)
@click.option(
    "--access",
    type=click.Choice(["ssh", "jupyter", "command"]),
    help="How you use it. [default: `ssh`, or `command` with a command]",
)
@click.option("--command", "line", metavar="TEXT", help="Run this, keep its log and exit code, then stop.")
@click.option("--shell", is_flag=True, help="Run the text of --command with `sh -c`.")
@click.option(
    "--time-limit",
    metavar="TIME",
    help="Stop it this long after each start: `90s`, `30m`, `2h`, `1d`.",
)
@click.option("--graphics", is_flag=True, help="Let it draw with its GPUs (EGL, Vulkan), not only compute.")
@click.option("--rm", "removed", is_flag=True, help="Delete it when its command or time limit ends.")
@click.argument("words", nargs=-1, metavar="[-- COMMAND...]")
@click.option(
    "--user-data",
    type=click.Path(),
    metavar="FILE",
    help="A script with `#!` to run once, at the first start. `-`: stdin.",
)
@click.option(
    "--key", "keys", multiple=True, metavar="KEY", help="A public SSH key or its file. Can be repeated."
)
@click.option("--label", "labels", multiple=True, metavar="K=V", help="Set a label. Can be repeated.")
@click.option(
    "--env",
    "environment",
    multiple=True,
    metavar="K=V",
    help="Set a variable for the command. Can be repeated.",
)
@click.option(
    "--instances", type=click.IntRange(1, INSTANCES_PER_LAUNCH_MAX), default=1, show_default=True, metavar="N"
)
@click.option(
    "--mode",
    type=click.Choice(list(get_args(ModeWord))),
    help="The purchase mode: `spot` uses idle GPUs and can be interrupted; `bid` offers a price. [default: on-demand]",
)
@click.option("--spot", is_flag=True, help="Short for `--mode spot`.")
@click.option(
    "--security-group",
    "security_groups",
    multiple=True,
    metavar="NAME",
    help="Put it into this security group. Can be repeated. [default: `default`]",
)
@click.option(
    "--network",
    "networks",
    multiple=True,
    metavar="NAME",
    help="Put it into this network. Repeat for more interfaces; the first leads to the internet. [default: `default`]",
)
@click.option(
    "--subnet",
    "subnets",
    multiple=True,
    metavar="[NETWORK/]NAME",
    help="Take its address from this subnet. [default: `default`]",
)
@click.option(
    "--address",
    "addresses",
    multiple=True,
    metavar="IP",
    help="Its address in one of its networks. [default: the lowest free one]",
)
@click.option(
    "--volume", "volumes", multiple=True, metavar="NAME[:PATH]",
    help="Give it this volume, at /volumes/NAME or PATH. Can be repeated.",
)  # fmt: skip
@click.option(
    "--data", multiple=True, metavar="NAME", help="Read this dataset under $TERA_DATA/NAME. Can be repeated."
)
@click.option("--host", metavar="NAME", help="Place it on this own host.")
@place_options
@click.option("--site", default="", metavar="NAME", help="Run it at this site. [default: any own host]")
@click.option(
    "--provider", default="", metavar="NAME", help="Rent at this provider. Needs --type, or --gpu and --gpus."
)
@click.option("--offer", metavar="ID", help="Rent this offer of `tera offers --json`, at its price at most.")
@click.option("--burst", is_flag=True, help="Use own hosts while they have room, and rent otherwise.")
@click.option(
    "--type", default="", metavar="TYPE", help="With --site or --provider: the machine type to rent."
)
@click.option(
    "--region",
    default="",
    metavar="REGION",
    help="With --type: the region. [default: the cheapest available]",
)
@click.option("--zone", default="", metavar="ZONE", help="With --type: the zone.")
@click.option(
    "--bid",
    metavar="PRICE",
    help="With --mode bid: the most you pay per hour, for each GPU on own hosts, for the whole machine elsewhere."
    " With --mode spot, of a rented machine: the same as --price-max.",
)
@click.option(
    "--price-max",
    "--max-price",
    "max_price",
    metavar="PRICE",
    help="Of a rented machine: the highest price per hour.",
)
@click.option(
    "--restart-policy",
    type=click.Choice(list(get_args(RestartPolicyWord))),
    help="If it stops by itself or is lost: leave it, restart or re-create it in the same place, or anywhere."
    " Re-creating a rented machine costs money. [default: same-host; never if rented]",
)
@click.option(
    "--plan",
    "plan",
    type=click.Path(),
    metavar="FILE",
    help="Launch a choice from a file of `tera plan --json`.",
)
@click.option(
    "--choice",
    type=click.IntRange(1),
    metavar="N",
    help="With --plan: launch only the choice of this rank. [default: the best own host, else the offers in order]",
)
@click.option(
    "--idempotency-key", default="", metavar="TEXT", help="Repeating a launch with this key has no effect."
)
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
        if words["explain"]:
            placement = client.placements.explain(request)
            write_json(placement) if as_json else write_placement(placement)
            return
        _mind_the_key(request)
        price = price_of(client, request, yes=yes)
        answer = client.instances.launch(request, idempotency_key=idempotency_key)
        launched = answer.items
        if price:
            remark(price)
        if answer.queued:
            if not wait:
                queued = client.queue.get(answer.queued.id)  # with its place
                write_json(queued) if as_json else write_waiting(queued)
                return
            launched = wait_until_launched(client, answer.queued, timeout)
        follows = wait and request.access == "command" and len(launched) == 1 and not as_json
        if follows:
            launched = (follow(client, launched[0], timeout),)
        elif wait:
            launched = waited_for(client, launched, timeout)
    if as_json:
        write_json(launched if request.instances > 1 else launched[0])
    elif follows:
        remark(f"{launched[0].name}: {state_text(launched[0])}")
    else:
        write_instances(launched)
        say_what_next(launched, waited=wait)
    complain_of_failed(launched)
    if wait:
        end_as(launched)


def _mind_the_key(request: LaunchRequest) -> None:
    if request.access == "ssh" and not request.authorized_keys:
        remark("Launched without an SSH key, because `ssh-keygen` is not installed. Use `tera exec` instead")


def request_from(words: dict[str, Any]) -> LaunchRequest:
    """Build the request from the options, and check what can be checked without the server."""
    shape, labels = shape_from(words), parse_pairs(words["labels"], "--label")
    instances = words["instances"]
    if words["plan"] and words["offer"]:
        raise BadInput("`--plan` and `--offer` cannot be combined", hint="Leave one of them out")
    if words["plan"]:
        shape, words, planned = _planned(shape, words)
        instances = max(instances, planned)
    elif words["choice"]:
        raise BadInput("`--choice` needs `--plan`", hint="Add `--plan FILE.json`")
    elif words["offer"]:
        shape, words = _offered(shape, words, offer_file.find(words["offer"]))
    command = _command_from(words["line"], words["words"], shell=words["shell"])
    access: AccessWord = words["access"] or ("command" if command else "ssh")
    if access == "command" and not command:
        raise BadInput(
            "`--access command` needs a command",
            hint="Add `--command 'python3 train.py'`, or write the command after `--`",
        )
    if access != "command" and command:
        raise BadInput(
            f"`--access {access}` cannot run a command", hint="Leave out `--access` or the command"
        )
    return LaunchRequest(
        name=check_name(words["name"], "an instance") if words["name"] is not None else None,
        shape=shape,
        image=words["image"],
        access=access,
        command=command,
        user_data=read_user_data(words["user_data"]) if words["user_data"] else "",
        authorized_keys=ssh_files.public_keys(words["keys"], Path(home()), Path.home()),
        labels=labels,
        environment=parse_pairs(words["environment"], "--env"),
        mode=mode_from(words["mode"], spot=words["spot"]),
        time_limit_seconds=_time_limit(words["time_limit"]),
        delete_when_done=_is_removed(words, access),
        graphics=words["graphics"],
        instances=instances,
        host=words["host"],
        site=words["site"],
        provider=words["provider"],
        type=words["type"],
        burst=words["burst"],
        region=words["region"],
        zone=words["zone"],
        bid_micros_per_hour=parse_amount(words["bid"]) if words["bid"] else None,
        max_price_micros_per_hour=parse_amount(words["max_price"]) if words["max_price"] else None,
        offer=words["offer"] or "",
        alternatives=words.get("alternatives", ()),
        security_groups=words["security_groups"],
        networks=words["networks"],
        subnets=words["subnets"],
        addresses=words["addresses"],
        data=words["data"],
        volumes=words["volumes"],
        restart_policy=words["restart_policy"],
        **place_from(words),
    )


def _planned(shape: ShapeRequest, words: dict[str, Any]) -> tuple[ShapeRequest, dict[str, Any], int]:
    """The shape and options of a plan's choice, and the number of machines."""
    if shape.name or shape.gpu or shape.gpus is not None:
        raise BadInput("`--plan` already names the GPUs", hint="Leave out `--gpu`, `--gpus` and `--shape`")
    plan = plan_file.read_plan(words["plan"])
    choice = plan_file.choose(plan, words["choice"], rented=words["burst"])
    if not plan_file.is_own(choice):
        assert choice.offer is not None, "`choose` returns choices with an offer"
        others = () if words["choice"] else plan_file.offers(plan, choice)
        limit = parse_amount(words["max_price"]) if words["max_price"] else None
        shape, words = _offered(shape, words, choice.offer)
        if others:
            remark(f"If it is not available: {len(others)} more offers of the plan, in its order")
        alternatives = tuple(renting.alternative_of(each, limit) for each in others)
        return shape, {**words, "alternatives": alternatives}, choice.instances
    planned = plan_file.shape_of(choice)
    remark(f"From the plan: {planned.gpus}× {planned.gpu}, as on `{plan_file.server_of(choice)}`")
    whole = ShapeRequest(
        gpu=planned.gpu,
        gpus=planned.gpus,
        vcpus=shape.vcpus,
        ram_bytes=shape.ram_bytes,
        disk_bytes=shape.disk_bytes,
    )
    return whole, words, choice.instances


def _offered(
    shape: ShapeRequest, words: dict[str, Any], offer: "OfferShape"
) -> tuple[ShapeRequest, dict[str, Any]]:
    """The shape and options that rent an offer, at its price at most unless `--price-max` says otherwise."""
    if shape != ShapeRequest() or words["type"] or words["provider"] or words["site"]:
        raise BadInput(
            "The offer already names the machine",
            hint="Leave out the GPUs, `--type`, `--provider` and `--site`",
        )
    shape, found = renting.options_of(offer)
    remark(f"Renting {offer_file.text_of(offer)}")
    limit = words["max_price"] or found["max_price"]
    return shape, {**words, **found, "max_price": limit, "offer": offer.id}


def _time_limit(text: str | None) -> int | None:
    if text is None:
        return None
    seconds = parse_duration_seconds(text, "--time-limit")
    if not TIME_LIMIT_SECONDS_MIN <= seconds <= TIME_LIMIT_SECONDS_MAX:
        raise BadInput(
            f"`--time-limit {text}` is out of range",
            hint=f"Use 1 s to {TIME_LIMIT_SECONDS_MAX // 86_400} days",
        )
    return seconds


def _is_removed(words: dict[str, Any], access: AccessWord) -> bool:
    if words["removed"] and access != "command" and words["time_limit"] is None:
        raise BadInput(
            "`--rm` needs a command or `--time-limit`, otherwise the instance is never deleted",
            hint="Write `tera launch --rm -- python3 train.py`, or add `--time-limit 2h`",
        )
    return bool(words["removed"])


def _command_from(line: str | None, words: tuple[str, ...], *, shell: bool) -> tuple[str, ...]:
    if line is not None and words:
        raise BadInput("`--command` and a command after `--` cannot be combined", hint="Leave one out")
    if shell and line is None:
        raise BadInput("`--shell` needs `--command`", hint="Write `--shell --command 'a.py && b.py'`")
    if line is None:
        return words
    if (
        not line.strip()
    ):  # often an unset variable: an instance without a command would keep running and cost money
        raise BadInput("`--command` is empty", hint="Leave it out to launch an instance you can log in to")
    if shell:
        return ("sh", "-c", line)
    if found := unquoted_shell(line):
        remark(
            f"note: `--command` runs without a shell, so `{found}` has no special meaning; add `--shell` to use one"
        )
    return parse_command(line)


def read_user_data(path: str) -> str:
    """Read a user-data script. A file that is too large is refused without reading all of it."""
    try:
        with click.open_file(path, "rb") as file:
            content: bytes = file.read(USER_DATA_BYTES_MAX + 1)
    except OSError as error:
        raise BadInput(
            f"The user-data `{path}` cannot be read: {error.strerror}", hint="Check its name and permissions"
        ) from None
    if len(content) > USER_DATA_BYTES_MAX:
        raise BadInput(
            f"The user-data `{path}` has more than {USER_DATA_BYTES_MAX >> 10} KB",
            hint="Let the script download large files, or copy them later with `tera cp`",
        )
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        raise BadInput(f"The user-data `{path}` is not UTF-8 text", hint="Save it as UTF-8") from None
    if not text.startswith("#!"):
        raise BadInput(
            f"The user-data `{path}` is not a script: its first line must start with `#!`",
            hint="Start it with `#!/bin/sh` or `#!/usr/bin/python3`; `#cloud-config` is not supported",
        )
    return text
