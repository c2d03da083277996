"""`tera`: finds the command, runs it, and turns every error into one sentence, a hint and an exit code."""

# ruff: noqa: E402
import gc

gc.disable()  # imports make no garbage, and looking for it while they run costs a cold start 5 ms

import os
import sys
from io import TextIOWrapper
from typing import ClassVar, Final, NoReturn

import click

from teraflock import __version__
from teraflock.base.errors import TeraflockError
from teraflock.cli.lazy import LazyGroup
from teraflock.cli.output import complain

gc.enable()

PLAN: Final[dict[str, tuple[str, str]]] = {
    "gpus": ("teraflock.cli.gpu", "GPU models: memory, speed, and who offers them"),
    "offers": ("teraflock.cli.offer", "Every GPU offer there is, cheapest first"),
    "estimate": (
        "teraflock.cli.estimate.command",
        "What a training step needs on every GPU: memory and time",
    ),
    "trace": ("teraflock.cli.trace", "Record a script of yours for `tera estimate`, without a GPU"),
    "plan": ("teraflock.cli.plan.command", "From a job to the cheapest way to finish it"),
    "compare": ("teraflock.cli.compare", "Providers, cards and prices in one table, for a document"),
    "providers": ("teraflock.cli.provider", "Clouds: how they bill, what spot means, which traps they have"),
    "rates": ("teraflock.cli.rate", "Exchange rates: show them, or put your own in place"),
}
RUN: Final[dict[str, tuple[str, str]]] = {
    "launch": ("teraflock.cli.instance.launch", "An instance of your own, with whole GPUs, in seconds"),
    "ps": ("teraflock.cli.instance.list", "List instances and their state"),
    "show": ("teraflock.cli.instance.show", "One instance: addresses, cards, how to log in"),
    "ssh": ("teraflock.cli.instance.ssh:ssh", "Log in to an instance, or run a command there"),
    "exec": ("teraflock.cli.instance.exec", "Run a command in an instance, without SSH"),
    "logs": ("teraflock.cli.instance.logs", "What an instance's command or console wrote"),
    "cp": ("teraflock.cli.instance.ssh:cp", "Copy files to and from an instance"),
    "stop": (
        "teraflock.cli.instance.lifecycle:stop",
        "Stop instances; their disks are kept, their cards are free",
    ),
    "start": ("teraflock.cli.instance.lifecycle:start", "Start stopped instances"),
    "restart": ("teraflock.cli.instance.lifecycle:restart", "Stop instances and start them again"),
    "resize": ("teraflock.cli.instance.resize", "More or less of GPUs, vCPUs, memory and disk"),
    "label": ("teraflock.cli.instance.label", "Change the labels of an instance"),
    "snapshot": ("teraflock.cli.snapshot:snapshot", "Keep the disk of an instance as it is now"),
    "restore": ("teraflock.cli.snapshot:restore", "Bring a disk back to a snapshot"),
    "delete": ("teraflock.cli.instance.lifecycle:delete", "Delete instances with their disks and snapshots"),
    "events": ("teraflock.cli.event", "What happened, and what happens as it does"),
    "image": ("teraflock.cli.image", "What instances boot: list, build, make from an instance"),
    "shapes": ("teraflock.cli.shape", "Named sizes of instances, and how many are free"),
}
TENANTS: Final[dict[str, tuple[str, str]]] = {
    "whoami": ("teraflock.cli.whoami", "Who you are to the server, and what you may do"),
    "announce": ("teraflock.cli.announcement", "Tell tenants something"),
    "org": ("teraflock.cli.organisation", "Organisations: create, suspend, rename, delete"),
    "project": (
        "teraflock.cli.project",
        "Projects: each has a private network and a quota of its own",
    ),
    "member": ("teraflock.cli.member", "Members and their roles"),
    "key": ("teraflock.cli.key", "API keys: make, list, revoke"),
    "quota": ("teraflock.cli.quota", "What a project has, and the most it may have"),
    "audit": ("teraflock.cli.audit", "Who changed what, and when"),
}
COSTS: Final[dict[str, tuple[str, str]]] = {
    "price": ("teraflock.cli.price", "What everything costs; a new price book"),
    "quote": ("teraflock.cli.quote", "What a launch will cost, before it starts"),
    "bill": ("teraflock.cli.bill", "What a month cost, line by line; its proof and its export"),
    "budget": ("teraflock.cli.budget", "What a project may spend in a month"),
    "credits": ("teraflock.cli.credit", "What was given to a project, and what is left"),
    "buy": ("teraflock.cli.purchase", "Months and years of an instance, paid ahead"),
    "billing": ("teraflock.cli.billing", "How a project pays, and what it owes"),
    "invoice": ("teraflock.cli.invoice", "What is sent to a customer"),
}
HOUSE: Final[dict[str, tuple[str, str]]] = {
    "up": ("teraflock.cli.installation:up", "Start the cloud on this machine; again: does nothing twice"),
    "down": ("teraflock.cli.installation:down", "Stop it; nothing is lost"),
    "purge": ("teraflock.cli.installation:purge", "Remove all that it made on this machine, and only that"),
    "serve": ("teraflock.cli.serve", "Run the server in the foreground"),
    "doctor": ("teraflock.cli.doctor", "Check everything, and say what to repair"),
    "backup": ("teraflock.cli.backup", "Back up the installation, and restore it"),
    "host": ("teraflock.cli.host", "Servers: what they have, what is free, what they cost"),
    "site": ("teraflock.cli.site", "Engines and cloud accounts: list, check, add"),
    "completion": ("teraflock.cli.completion", "Shell completion for bash, zsh or fish"),
}
SECTIONS: Final = {"Plan": PLAN, "Run": RUN, "Costs": COSTS, "Tenants": TENANTS, "House": HOUSE}
"""Each command, where it lives, and its line in `tera --help`, which loads none of them."""

INTERNAL_ERROR_EXIT_CODE: Final = 70  # EX_SOFTWARE
INTERRUPTED_EXIT_CODE: Final = 130  # as a shell says it of SIGINT


class _Tera(LazyGroup):
    commands_by_name: ClassVar = PLAN | RUN | COSTS | TENANTS | HOUSE
    hidden_by_name: ClassVar = {"hosts": "teraflock.cli.plan.server:hosts"}

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for heading, commands in SECTIONS.items():
            self.write_section(formatter, heading, commands)


EXAMPLES: Final = """\b
Examples:
  tera offers --gpu A100 --count 8 --mode spot
  tera estimate vgg16 --batch 256
  tera plan vgg16 --batch 256 --epochs 90 --samples 1281167 --deadline 7d
  tera launch --name train --gpu V100 --gpus 2 --wait
  tera ssh train
"""


@click.group(
    cls=_Tera,
    context_settings={"help_option_names": ["-h", "--help"]},
    help=f"A GPU cloud you own: which GPU, from whom, at what cost, and the machine to run it on.\n\n{EXAMPLES}",
)
@click.version_option(__version__, message="teraflock %(version)s")
def tera() -> None:
    pass


def run() -> NoReturn:
    """The entry point. No traceback reaches a user unless `TERA_DEBUG` asks for it."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # a terminal of old has no `●`; better a `?` than no answer
            stream.reconfigure(errors="replace")
    code = _run()
    _tell_news()
    sys.exit(code)


def _tell_news() -> None:
    """Show announcements that an answer of the server named, if any. Never a reason to fail."""
    transport = sys.modules.get("teraflock.client.transport")
    if transport is None or not transport.Transport.news:
        return
    try:
        from teraflock.cli.news import tell_news

        tell_news(transport.Transport.news)
    except (TeraflockError, OSError, ValueError):
        return


def _run() -> int:
    stdout = sys.stdout
    try:
        tera.main(prog_name="tera", standalone_mode=False)
        sys.stdout.flush()
    except TeraflockError as error:
        complain(error.sentence, error.hint)
        return error.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.ctx.get_help())
        return 2
    except click.ClickException as error:
        context = getattr(error, "ctx", None)
        complain(
            error.format_message().rstrip("."), f"See `{context.command_path} --help`" if context else ""
        )
        return error.exit_code
    except (click.exceptions.Abort, KeyboardInterrupt):
        complain("Stopped")
        return INTERRUPTED_EXIT_CODE
    except BrokenPipeError:
        # the reader has had enough (`tera offers | head`); nothing more can be written, not even on exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except SystemExit as ending:
        # click puts another stdout in place when the reader has had enough, and would call that a failure
        return ending.code if sys.stdout is stdout and isinstance(ending.code, int) else 0
    except OSError as error:
        complain(f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}")
        return 1
    except click.exceptions.Exit as error:
        return error.exit_code
    except Exception as error:
        if os.environ.get("TERA_DEBUG"):
            raise
        complain(
            f"Something went wrong inside Teraflock: {type(error).__name__}",
            "Set `TERA_DEBUG=1` and run it again to see where; a report of it is welcome",
        )
        return INTERNAL_ERROR_EXIT_CODE
    return 0
