"""`tera ssh` and `tera cp`: the system's own ssh and scp, told where to go, whom to trust and which key to use."""

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

SSH_HELP: Final = """Log in to an instance, or run a command there by SSH.

The host key comes from the server, so nothing is asked and nothing else is trusted. Several words reach the guest as
the words they are; one text alone is a line for the guest's shell.

\b
Examples:
  tera ssh web
  tera ssh web -- nvidia-smi -L
  tera ssh web -- 'cd /data && du -sh *'
  tera ssh web -L 8888:localhost:8888
"""
CP_HELP: Final = """Copy files to and from an instance, as scp does: NAME:PATH is in the instance.

Files of a stopped instance, such as one whose command has ended, can be fetched without starting it: up to 1 GB and
10,000 files at once, without links. To copy files to it, start it first.

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
@click.option("-i", "--identity", type=click.Path(), metavar="FILE", help="A private key of your own.")
@click.option("-L", "forwards", multiple=True, metavar="PORT:HOST:PORT", help="As for ssh; may be repeated.")
@click.option("-A", "agent", is_flag=True, help="Forward your SSH agent.")
@click.option("-t", "terminal", is_flag=True, help="A terminal for the command.")
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
    way = reachable(instance)
    more = [word for each in forwards for word in ("-L", each)]
    more += ["-A"] * agent + ["-t"] * terminal
    options = ssh_files.options(instance.id, _trusted(instance), _identities(identity))
    # behind `--` nothing is an option, whatever the answer holds
    _become(
        ["ssh", *options, *more, "-p", str(way.port), "-l", way.user, "--", way.host, *remote_line(words)]
    )


@click.command(help=CP_HELP)
@click.argument("paths", nargs=-1, required=True, metavar="FROM... TO")
@click.option("-r", "recursive", is_flag=True, help="Folders with all that is in them.")
@click.option("-p", "preserve", is_flag=True, help="Keep times and modes.")
@click.option("-i", "--identity", type=click.Path(), metavar="FILE", help="A private key of your own.")
@project_option
def cp(
    paths: tuple[str, ...], recursive: bool, preserve: bool, identity: str | None, project: str | None
) -> None:
    if len(paths) < 2:
        raise BadInput("Copying needs a place to copy from and one to copy to")
    names = {name for name, _ in map(split_path, paths) if name}
    if len(names) != 1:
        raise BadInput(
            "One instance takes part in a copy" if names else "None of the paths is in an instance",
            hint="Write `web:/root/model.pt`; for a file here whose name has a colon, `./a:b`",
        )
    with connected(project) as client:
        instance = client.instances.get(names.pop())
        if instance.state == "stopped" or instance.simulated:
            _fetch(client, instance, paths, recursive=recursive)
            return
    way = reachable(instance)
    options = ssh_files.options(instance.id, _trusted(instance), _identities(identity))
    flags = ["-q"] * (not sys.stderr.isatty()) + ["-r"] * recursive + ["-p"] * preserve
    _become(["scp", *options, *flags, "-P", str(way.port), "--", *(scp_path(each, way) for each in paths)])


def _fetch(client: "Client", instance: "InstanceAnswer", paths: tuple[str, ...], *, recursive: bool) -> None:
    """Copy from an instance that nobody can log in to."""
    from teraflock.cli.instance.archive import fetch

    *sources, target = paths
    if split_path(target)[0] or not all(split_path(each)[0] for each in sources):
        reachable(instance)  # says why not
        raise AssertionError("a stopped instance is not reachable")
    fetch(client, instance.id, [split_path(each)[1] for each in sources], target, recursive=recursive)
    mark_simulated(client)


def remote_line(words: Sequence[str]) -> list[str]:
    """What ssh sends is always one line for the guest's shell: several words are quoted, so that they stay as given."""
    return list(words) if len(words) <= 1 else [shlex.join(words)]


def split_path(path: str) -> tuple[str, str]:
    """`web:/x` → (`web`, `/x`); a path here has no name. As scp has it: a colon behind a slash is part of the path."""
    name, colon, rest = path.partition(":")
    return (name, rest) if colon and name and "/" not in name else ("", path)


def scp_path(path: str, way: "SshAnswer") -> str:
    name, rest = split_path(path)
    if not name:
        return path if path.startswith(("/", "./", "../")) else f"./{path}"  # `-x` and `a:b` are files here
    host = f"[{way.host}]" if ":" in way.host else way.host
    return f"{way.user}@{host}:{rest}"


def reachable(instance: "InstanceAnswer") -> "SshAnswer":
    if instance.simulated:
        raise Refused(
            f"`{instance.name}` is SIMULATED: there is nothing to log in to",
            hint="`tera exec` shows what the simulated engine makes of a command",
        )
    if instance.state == "away" and instance.ssh and instance.ssh.host_key:
        remark(f"`{instance.name}` is away: the server cannot see its host now. Trying to log in anyway")
        return instance.ssh
    if instance.state != "running" or instance.ssh is None or not instance.ssh.host_key:
        does = {"stopped": f"`tera start {instance.name}` starts it", "failed": instance.problem}
        raise Refused(
            f"`{instance.name}` is {instance.state}: nobody can log in now",
            hint=does.get(instance.state) or f"`tera show {instance.name}` says how far it is",
        )
    return instance.ssh


def _trusted(instance: "InstanceAnswer") -> Path:
    assert instance.ssh is not None, "checked by `reachable`"
    return ssh_files.trust(Path(home()), instance.id, instance.ssh.host_key)


def _identities(given: str | None) -> list[Path]:
    if given is None:
        return ssh_files.identities(Path(home()), Path.home())
    if not Path(given).is_file():
        raise BadInput(f"There is no key at `{given}`")
    return [Path(given)]


def _become(words: list[str]) -> NoReturn:
    """Put ssh in place of this process: the terminal, signals and the exit code are its own from here on."""
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execvp(words[0], words)  # noqa: S606 -- a list of words, no shell
    except FileNotFoundError:
        raise Unavailable(
            f"There is no `{words[0]}` on this machine", hint="As root: apt-get install openssh-client"
        ) from None
