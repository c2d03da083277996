"""`tera exec`: a command in an instance, by the engine and not by SSH."""

import sys
from typing import Final

import click

from teraflock.base.errors import BadInput
from teraflock.cli.connection import connected, mark_simulated
from teraflock.cli.options import json_option, project_option
from teraflock.cli.output import remark, write_json
from teraflock.wire.instance import ExecRequest

STDIN_BYTES_MAX: Final = 1 << 20
NOT_FOUND: Final = 127
"""What engines and shells say where there is no such program."""
HELP: Final = """Run a command in an instance, without SSH; it need not have a network or a key.

The words are taken as they are: no shell stands between. The exit code is the command's.

\b
Examples:
  tera exec web -- nvidia-smi -L
  tera exec web -- sh -c 'ls /data | wc -l'
  echo hello | tera exec web --stdin -- tee /root/greeting
"""


@click.command(help=HELP)
@click.argument("name")
@click.argument("words", nargs=-1, required=True, metavar="-- COMMAND...")
@click.option("--stdin", "takes_stdin", is_flag=True, help="Send it what comes in here, up to 1 MB.")
@click.option(
    "--seconds",
    type=click.IntRange(1, 600),
    default=60,
    show_default=True,
    metavar="N",
    help="Ended after so many.",
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
        click.echo(answer.stdout, nl=False)
        click.echo(answer.stderr, nl=False, err=True)
        if answer.timed_out:
            remark(f"Killed after {seconds} s, exit code {answer.exit_code}: `--seconds` allows up to 600")
        if answer.exit_code == NOT_FOUND and not answer.stdout and not answer.stderr:
            remark(f"exit code {NOT_FOUND}: as if `{name}` had no program `{words[0]}`")
    raise SystemExit(answer.exit_code if 0 <= answer.exit_code < 256 else 255)


def _stdin() -> str:
    content = sys.stdin.buffer.read(STDIN_BYTES_MAX + 1)
    if len(content) > STDIN_BYTES_MAX:
        raise BadInput("More than 1 MB comes in", hint="`tera cp` brings files of any size")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise BadInput(
            "What comes in is no text in UTF-8", hint="`tera cp` brings files of any kind"
        ) from None
