"""`tera ssh` and `tera cp`: run the system's ssh and scp with the address, host key and SSH key of an instance."""

import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

import click

from teraflock.app.home import home
from teraflock.base.errors import BadInput, Refused, Unavailable
from teraflock.cli.connection import connected, mark_simulated
from teraflock.cli.instance import ssh_files
from teraflock.cli.options import project_option
from teraflock.cli.output import remark

if TYPE_CHECKING:
    from teraflock.client import Client
    from teraflock.wire.instance import InstanceAnswer, SshAnswer

SSH_HELP: Final = """Log in to an instance with SSH, or run a command there.

The host key comes from the server, so ssh never asks whether to trust it. A command of several words reaches the guest
unchanged; a single quoted text is run by the guest's shell.

\b
Examples:
  tera ssh web
  tera ssh web -- nvidia-smi -L
  tera ssh web -- 'cd /data && du -sh *'
  tera ssh web -L 8888:localhost:8888
"""
CP_HELP: Final = """Copy files to and from an instance. NAME:PATH is a path in the instance, as in scp.

You can copy files from a stopped instance, for example after its command has ended: up to 1 GB and 10,000 files at
once, without links. To copy files to it, start it first.

\b
Examples:
  tera cp train.py web:
  tera cp -r data/ web:/srv/data
  tera cp web:/root/model.pt .
  tera cp -r job:/root/checkpoints .
"""


@click.command(help=SSH_HELP)
@click.argument("name")
@click.argument("words", nargs=-1, metavar="[-- COMMAND...]")
@click.option("-i", "--identity", type=click.Path(), metavar="FILE", help="The private SSH key to use.")
@click.option(
    "-L",
    "forwards",
    multiple=True,
    metavar="PORT:HOST:PORT",
    help="Forward a port, as ssh does. Can be repeated.",
)
@click.option("-A", "agent", is_flag=True, help="Forward your SSH agent.")
@click.option("-t", "terminal", is_flag=True, help="Give the command a terminal.")
@project_option
def ssh(
    name: str,
    words: tuple[str, ...],
    identity: str | None,
    forwards: tuple[str, ...],
    agent: bool,
    terminal: bool,
    project: str | None,
) -> None:
    with connected(project) as client:
        instance = client.instances.get(name)
    more = [word for each in forwards for word in ("-L", each)]
    more += ["-A"] * agent + ["-t"] * terminal
    become_ssh(instance, identity, more, words)


@click.command(help=CP_HELP)
@click.argument("paths", nargs=-1, required=True, metavar="FROM... TO")
@click.option("-r", "recursive", is_flag=True, help="Copy folders with their contents.")
@click.option("-p", "preserve", is_flag=True, help="Keep times and modes.")
@click.option("-i", "--identity", type=click.Path(), metavar="FILE", help="The private SSH key to use.")
@project_option
def cp(
    paths: tuple[str, ...], recursive: bool, preserve: bool, identity: str | None, project: str | None
) -> None:
    if len(paths) < 2:
        raise BadInput("A copy needs a source and a target", hint="Such as `tera cp train.py web:`")
    names = {name for name, _ in map(split_path, paths) if name}
    if len(names) != 1:
        raise BadInput(
            "All instance paths must be in the same instance"
            if names
            else "None of the paths is in an instance",
            hint="Write `web:/root/model.pt`. Write `./a:b` for a local file with a colon in its name",
        )
    with connected(project) as client:
        instance = client.instances.get(names.pop())
        if instance.state == "stopped" or instance.simulated:
            _fetch(client, instance, paths, recursive=recursive)
            return
    way = reachable(instance)
    options = ssh_files.options(instance.id, _trusted(instance), _identities(identity))
    flags = ["-q"] * (not sys.stderr.isatty()) + ["-r"] * recursive + ["-p"] * preserve
    _replace_process(
        ["scp", *options, *flags, "-P", str(way.port), "--", *(scp_path(each, way) for each in paths)]
    )


def become_ssh(
    instance: "InstanceAnswer", identity: str | None, more: Sequence[str], words: Sequence[str] = ()
) -> NoReturn:
    """Replace this process with ssh. `more` are options, `words` the command."""
    way = reachable(instance)
    options = ssh_files.options(instance.id, _trusted(instance), _identities(identity))
    # after `--` nothing is an option, whatever the server sent
    _replace_process(
        ["ssh", *options, *more, "-p", str(way.port), "-l", way.user, "--", way.host, *remote_line(words)]
    )


def _fetch(client: "Client", instance: "InstanceAnswer", paths: tuple[str, ...], *, recursive: bool) -> None:
    """Copy from an instance that does not accept SSH."""
    from teraflock.cli.instance.archive import fetch

    *sources, target = paths
    if split_path(target)[0] or not all(split_path(each)[0] for each in sources):
        reachable(instance)  # raises with the reason
        raise AssertionError("a stopped instance is not reachable")
    fetch(client, instance.id, [split_path(each)[1] for each in sources], target, recursive=recursive)
    mark_simulated(client)


def remote_line(words: Sequence[str]) -> list[str]:
    """The command for ssh, which sends one line to the guest's shell. Several words are quoted to stay unchanged."""
    return list(words) if len(words) <= 1 else [shlex.join(words)]


def split_path(path: str) -> tuple[str, str]:
    """`web:/x` → (`web`, `/x`). A local path has no name. As in scp, a colon after a slash is part of the path."""
    name, colon, rest = path.partition(":")
    return (name, rest) if colon and name and "/" not in name else ("", path)


def scp_path(path: str, way: "SshAnswer") -> str:
    name, rest = split_path(path)
    if not name:
        return (
            path if path.startswith(("/", "./", "../")) else f"./{path}"
        )  # so that `-x` and `a:b` are local files
    host = f"[{way.host}]" if ":" in way.host else way.host
    return f"{way.user}@{host}:{rest}"


def reachable(instance: "InstanceAnswer") -> "SshAnswer":
    if instance.simulated:
        raise Refused(
            f"`{instance.name}` is SIMULATED, so you cannot log in",
            hint="Try a command with `tera exec`",
        )
    if instance.state == "away" and instance.ssh and instance.ssh.host_key:
        remark(f"`{instance.name}` is away: the server cannot reach its host. Trying to log in anyway")
        return instance.ssh
    if instance.state != "running" or instance.ssh is None or not instance.ssh.host_key:
        does = {"stopped": f"Start it with `tera start {instance.name}`", "failed": instance.problem}
        raise Refused(
            f"`{instance.name}` is {instance.state}, so you cannot log in now",
            hint=does.get(instance.state) or f"See its progress with `tera show {instance.name}`",
        )
    return instance.ssh


def _trusted(instance: "InstanceAnswer") -> Path:
    assert instance.ssh is not None, "checked by `reachable`"
    return ssh_files.trust(Path(home()), instance.id, instance.ssh.host_key)


def _identities(given: str | None) -> list[Path]:
    if given is None:
        return ssh_files.identities(Path(home()), Path.home())
    if not Path(given).is_file():
        raise BadInput(
            f"There is no file `{given}`",
            hint="Give the file of a private SSH key, such as `~/.ssh/id_ed25519`",
        )
    return [Path(given)]


def _replace_process(words: list[str]) -> NoReturn:
    """Replace this process with ssh, which takes over the terminal, signals and the exit code."""
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execvp(words[0], words)  # noqa: S606 -- a list of arguments, no shell
    except FileNotFoundError:
        raise Unavailable(
            f"`{words[0]}` is not installed", hint="Install it as root: apt-get install openssh-client"
        ) from None
