"""Entry point of `tera`: finds the command, runs it, and turns each error into a sentence, a hint and an exit code."""

import errno
import os
import sys
from io import FileIO, TextIOWrapper
from typing import ClassVar, Final, NoReturn

import click

from teraflock import __version__
from teraflock.base.errors import TeraflockError
from teraflock.base.garbage import collect_rarely
from teraflock.cli.lazy import LazyGroup
from teraflock.cli.output import complain

PLAN: Final[dict[str, tuple[str, str]]] = {
    "gpus": ("teraflock.cli.gpu", "List GPU models: memory, speed and providers"),
    "offers": ("teraflock.cli.offer", "List GPU offers, cheapest first"),
    "recommend": ("teraflock.cli.recommendation", "Recommend GPU models and offers for a purpose"),
    "estimate": (
        "teraflock.cli.estimate.command",
        "Estimate the memory and time of a workload on each GPU model",
    ),
    "trace": ("teraflock.cli.trace", "Record your script for `tera estimate`, without a GPU"),
    "plan": ("teraflock.cli.plan.command", "Find the cheapest offers that finish a job"),
    "compare": ("teraflock.cli.compare", "Compare providers, GPU models and prices in one table"),
    "providers": ("teraflock.cli.provider", "List providers: billing rules, spot terms, pitfalls"),
    "rates": ("teraflock.cli.rate", "Show exchange rates, or set your own"),
}
RUN: Final[dict[str, tuple[str, str]]] = {
    "run": ("teraflock.cli.run.command", "Run a script or command on an instance of its own"),
    "runs": ("teraflock.cli.run.verbs:runs", "List runs: their state, progress and cost"),
    "launch": ("teraflock.cli.instance.launch", "Launch instances with whole GPUs"),
    "queue": ("teraflock.cli.queue", "List and cancel launches that wait for room"),
    "bid": ("teraflock.cli.bid", "Change the bid of an instance on idle GPUs"),
    "bids": ("teraflock.cli.bid:prices", "Show what idle GPUs cost in auctions"),
    "ps": ("teraflock.cli.instance.list", "List instances and their state"),
    "show": ("teraflock.cli.instance.show", "Show one instance: addresses, GPUs, how to log in"),
    "ssh": ("teraflock.cli.instance.ssh:ssh", "Log in to an instance, or run a command there"),
    "jupyter": ("teraflock.cli.instance.jupyter", "Open the Jupyter of an instance, through SSH if needed"),
    "exec": ("teraflock.cli.instance.exec", "Run a command in an instance, without SSH"),
    "logs": ("teraflock.cli.instance.logs", "Show the output of an instance's command, or its console"),
    "cp": ("teraflock.cli.instance.ssh:cp", "Copy files to and from an instance"),
    "stop": (
        "teraflock.cli.instance.lifecycle:stop",
        "Stop instances: keep their disks, free their GPUs",
    ),
    "start": ("teraflock.cli.instance.lifecycle:start", "Start stopped instances"),
    "restart": ("teraflock.cli.instance.lifecycle:restart", "Restart instances"),
    "resize": ("teraflock.cli.instance.resize", "Change the GPUs, vCPUs, memory or disk of an instance"),
    "label": ("teraflock.cli.instance.label", "Change the labels of an instance"),
    "snapshot": (
        "teraflock.cli.snapshot:snapshot",
        "Create, list and delete snapshots of an instance's disk",
    ),
    "restore": ("teraflock.cli.snapshot:restore", "Restore an instance's disk from a snapshot"),
    "delete": ("teraflock.cli.instance.lifecycle:delete", "Delete instances with their disks and snapshots"),
    "top": ("teraflock.cli.telemetry", "Show what instances, or hosts and cards, use right now"),
    "events": ("teraflock.cli.event", "Show events; `--follow` streams new ones"),
    "image": ("teraflock.cli.image", "List, build and delete images"),
    "volume": ("teraflock.cli.volume", "Manage volumes: disks that outlive instances"),
    "data": ("teraflock.cli.dataset", "Store data once, and read it from instances and runs"),
    "publish": ("teraflock.cli.published_port:publish", "Publish ports of instances on their host"),
    "unpublish": ("teraflock.cli.published_port:unpublish", "Close a published port"),
    "lb": ("teraflock.cli.balancer", "Manage load balancers: one address for several instances"),
    "network": ("teraflock.cli.network", "Manage networks and peerings; check which connections pass"),
    "subnet": ("teraflock.cli.subnet", "Manage subnets: parts of a network, each with its own ACL"),
    "address": ("teraflock.cli.address", "Manage public addresses of instances and balancers"),
    "acl": ("teraflock.cli.acl", "Manage network ACLs at the border of a subnet"),
    "sg": ("teraflock.cli.security_group", "Manage security groups: the firewall of instances"),
    "shapes": ("teraflock.cli.shape", "List named sizes, and how many are free"),
}
TENANTS: Final[dict[str, tuple[str, str]]] = {
    "whoami": ("teraflock.cli.whoami", "Show your member, organisation, roles and key"),
    "announce": ("teraflock.cli.announcement", "Publish, list and remove announcements"),
    "org": ("teraflock.cli.organisation", "Create, suspend, rename and delete organisations"),
    "project": (
        "teraflock.cli.project",
        "List, create and delete projects",
    ),
    "member": ("teraflock.cli.member", "List, add and remove members, and set their roles"),
    "key": ("teraflock.cli.key", "List, create and revoke API keys"),
    "ssh-key": ("teraflock.cli.ssh_key", "List, add and remove your SSH keys"),
    "console": ("teraflock.cli.console", "Sign in to the web console, invite members, end sessions"),
    "quota": ("teraflock.cli.quota", "Show and set quotas"),
    "audit": ("teraflock.cli.audit", "Show who changed what, and when"),
}
COSTS: Final[dict[str, tuple[str, str]]] = {
    "price": ("teraflock.cli.price", "Show prices, or set a price book"),
    "quote": ("teraflock.cli.quote", "Show the price of an instance before you launch it"),
    "bill": ("teraflock.cli.bill", "Show, verify and export the bill of a month"),
    "budget": ("teraflock.cli.budget", "Show and set a project's monthly budget"),
    "credits": ("teraflock.cli.credit", "List credits and what is left of them, or give some"),
    "buy": ("teraflock.cli.purchase", "Pay for an instance by the month, or reserve it for years"),
    "billing": ("teraflock.cli.billing", "Show and set how a project pays, and record payments"),
    "invoice": ("teraflock.cli.invoice", "List, issue and print invoices"),
}
INSTALLATION: Final[dict[str, tuple[str, str]]] = {
    "up": ("teraflock.cli.installation:up", "Start Teraflock on this machine. Safe to run again"),
    "down": ("teraflock.cli.installation:down", "Stop Teraflock on this machine. No data is lost"),
    "purge": ("teraflock.cli.installation:purge", "Remove everything that Teraflock created on this machine"),
    "serve": ("teraflock.cli.serve", "Run the server in the foreground"),
    "doctor": ("teraflock.cli.doctor", "Check this machine and report what to repair"),
    "backup": ("teraflock.cli.backup", "Back up and restore the installation"),
    "host": ("teraflock.cli.host", "Manage hosts: capacity, networks, costs"),
    "site": ("teraflock.cli.site", "List, check and add engines and cloud accounts"),
    "account": ("teraflock.cli.account", "Add, check and share accounts at public clouds"),
    "completion": ("teraflock.cli.completion", "Print the completion script for bash, zsh or fish"),
}
SECTIONS: Final = {"Plan": PLAN, "Run": RUN, "Costs": COSTS, "Tenants": TENANTS, "Installation": INSTALLATION}
"""The commands by section: module and help line of each. `tera --help` imports none of these modules."""

INTERNAL_ERROR_EXIT_CODE: Final = 70  # EX_SOFTWARE
INTERRUPTED_EXIT_CODE: Final = 130  # 128 + SIGINT, as in a shell


class _Tera(LazyGroup):
    commands_by_name: ClassVar = PLAN | RUN | COSTS | TENANTS | INSTALLATION
    hidden_by_name: ClassVar = {"hosts": "teraflock.cli.plan.server:hosts"}

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for heading, commands in SECTIONS.items():
            self.write_section(formatter, heading, commands)


EXAMPLES: Final = """\b
Examples:
  tera offers --gpu V100 --mode spot
  tera estimate vgg16 --batch 256
  tera plan vgg16 --batch 256 --epochs 90 --samples 1281167 --deadline 7d
  tera launch --name train --gpu V100 --gpus 2 --wait
  tera ssh train
"""


@click.group(
    cls=_Tera,
    context_settings={"help_option_names": ["-h", "--help"]},
    help=f"A GPU cloud you own: compare GPUs and prices, then launch and bill instances.\n\n{EXAMPLES}",
)
@click.version_option(__version__, message="teraflock %(version)s")
def tera() -> None:
    pass


def run() -> NoReturn:
    """Run `tera` and exit. Tracebacks are shown only if `TERA_DEBUG` is set."""
    collect_rarely()
    _buffer_stdout()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # show `?` where the terminal's encoding has no `●`
            stream.reconfigure(errors="replace")
    code = _run()
    _show_announcements()
    sys.exit(code)


def _buffer_stdout() -> None:
    """With `PYTHONUNBUFFERED`, Python drops what a full disk or pipe does not take at once, without an error."""
    if isinstance(sys.stdout, TextIOWrapper) and isinstance(sys.stdout.buffer, FileIO):
        sys.stdout = open(1, "w", encoding=sys.stdout.encoding, closefd=False)  # noqa: SIM115


def _show_announcements() -> None:
    """Show new announcements if a response of the server named any. Failures are ignored."""
    transport = sys.modules.get("teraflock.client.transport")
    if transport is None or not transport.Transport.news:
        return
    try:
        from teraflock.cli.news import show_announcements

        show_announcements(transport.Transport.news)
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
        from teraflock.cli.usage_error import sentence_and_hint

        complain(*sentence_and_hint(error))
        return error.exit_code
    except (click.exceptions.Abort, KeyboardInterrupt):
        complain("Interrupted")
        return INTERRUPTED_EXIT_CODE
    except BrokenPipeError:
        # the reader closed the pipe (`tera offers | head`): nothing more can be written, not even on exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except SystemExit as stop:
        # click replaces stdout when the reader closes the pipe, and exits with an error: that is not a failure
        return stop.code if sys.stdout is stdout and isinstance(stop.code, int) else 0
    except OSError as error:
        where = f": {error.filename}" if error.filename else ""
        full = error.errno in {errno.ENOSPC, errno.EDQUOT}
        complain(f"{error.strerror or error}{where}", "Free some space, then try again" if full else "")
        return 1
    except click.exceptions.Exit as error:
        return error.exit_code
    except Exception as error:
        if os.environ.get("TERA_DEBUG"):
            raise
        complain(
            f"Unexpected error in Teraflock: {type(error).__name__}",
            "Run it again with `TERA_DEBUG=1` to see the traceback, and please report it",
        )
        return INTERNAL_ERROR_EXIT_CODE
    return 0
