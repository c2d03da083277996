"""`tera exec`: run a command in an instance through the engine, without SSH."""

import sys
from typing import Final

import click

from teraflock.base.errors import BadInput
from teraflock.cli.connection import connected, mark_simulated
from teraflock.cli.options import json_option, project_option
from teraflock.cli.output import remark, write_json, write_output
from teraflock.wire.instance import ExecRequest

STDIN_BYTES_MAX: Final = 1 << 20
NOT_FOUND: Final = 127
"""The exit code of engines and shells for an unknown program."""
HELP: Final = """Run a command in an instance without SSH. The instance needs no network and no SSH key.

The command runs without a shell. The exit code is that of the command.

\b
Examples:
  tera exec web -- nvidia-smi -L
  tera exec web -- sh -c 'ls /data | wc -l'
  echo hello | tera exec web --stdin -- tee /root/greeting
"""


@click.command(help=HELP)
@click.argument("name")
@click.argument("words", nargs=-1, required=True, metavar="-- COMMAND...")
@click.option("--stdin", "takes_stdin", is_flag=True, help="Pass stdin to the command, up to 1 MB.")
@click.option(
    "--seconds",
    type=click.IntRange(1, 600),
    default=60,
    show_default=True,
    metavar="N",
    help="Kill the command after this many seconds.",
)
@project_option
@json_option
def command(
    name: str, words: tuple[str, ...], takes_stdin: bool, seconds: int, project: str | None, as_json: bool
) -> None:
    request = ExecRequest(command=words, stdin=_stdin() if takes_stdin else "", seconds_max=seconds)
    with connected(project) as client:
        answer = client.instances.exec(name, request)
        mark_simulated(client)
    if as_json:
        write_json(answer)
    else:
        write_output(answer.stdout)
        write_output(answer.stderr, err=True)
        if answer.timed_out:
            remark(f"Killed after {seconds} s, exit code {answer.exit_code}. `--seconds` can be up to 600")
        if answer.exit_code == NOT_FOUND and not answer.stdout and not answer.stderr:
            remark(f"Exit code {NOT_FOUND}: `{name}` probably has no program `{words[0]}`")
    raise SystemExit(answer.exit_code if 0 <= answer.exit_code < 256 else 255)


def _stdin() -> str:
    content = sys.stdin.buffer.read(STDIN_BYTES_MAX + 1)
    if len(content) > STDIN_BYTES_MAX:
        raise BadInput("stdin has more than 1 MB", hint="Use `tera cp`, which copies files of any size")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise BadInput(
            "stdin is not UTF-8 text", hint="Use `tera cp`, which copies files of any kind"
        ) from None
