"""`tera invoice`: list, issue and print invoices."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from teraflock.base.errors import BadInput
from teraflock.base.money import amount_text
from teraflock.cli.connection import connected, in_project
from teraflock.cli.lazy import NamingGroup
from teraflock.cli.options import project_option
from teraflock.cli.output import remark, tell
from teraflock.cli.parse_money import month_argument, month_option
from teraflock.cli.table import write_list
from teraflock.words.invoice import FIELDS

if TYPE_CHECKING:
    from teraflock.client import Client

HELP: Final = """List, issue and print the invoices of a project.

\b
Examples:
  tera invoice list
  tera invoice preview --pdf preview.pdf
  tera invoice issue 2026-10
  tera invoice show 2026-10 --pdf october.pdf
  tera invoice show 2026-10 --out october.html
"""
command = NamingGroup("command", help=HELP)


@command.command("list", help="List all invoices, oldest first.")
@in_project
def list_(client: "Client", as_json: bool) -> None:
    found = client.invoices.list()
    empty = "No invoices yet. An invoice is issued after the end of a month"
    write_list(found, FIELDS, as_json=as_json, empty=empty)


@command.command(help="Issue the invoice of a past month. For operators.")
@month_argument
@in_project
def issue(client: "Client", month: str, as_json: bool) -> None:
    made = client.invoices.issue(month)
    tell(made, f"Invoice {made.number}: {amount_text(made.due_micros, made.currency)} due", as_json)


@command.command(help="Print an invoice as HTML, or write it as a PDF.")
@month_argument
@click.option(
    "--out", type=click.Path(), metavar="FILE", help="Write the HTML page to this file. [default: stdout]"
)
@click.option("--pdf", type=click.Path(), metavar="FILE", help="Write a PDF to this file.")
@project_option
def show(month: str, out: str | None, pdf: str | None, project: str | None) -> None:
    _check_one(out, pdf)
    with connected(project) as client:
        content = client.invoices.pdf(month) if pdf else client.invoices.html(month)
    _put(content, out, pdf)


@command.command(
    help="Print the invoice of a month as it would be now. It is marked PREVIEW and has no number."
)
@month_option
@click.option(
    "--out", type=click.Path(), metavar="FILE", help="Write the HTML page to this file. [default: stdout]"
)
@click.option("--pdf", type=click.Path(), metavar="FILE", help="Write a PDF to this file.")
@project_option
def preview(month: str, out: str | None, pdf: str | None, project: str | None) -> None:
    _check_one(out, pdf)
    with connected(project) as client:
        content = client.invoices.preview(month, pdf=bool(pdf))
    _put(content, out, pdf)


def _check_one(out: str | None, pdf: str | None) -> None:
    if out and pdf:
        raise BadInput("`--out` and `--pdf` cannot be combined", hint="Leave one of them out")


def _put(content: bytes, out: str | None, pdf: str | None) -> None:
    if (file := pdf or out) is None:
        sys.stdout.buffer.write(content)
        return
    try:
        Path(file).write_bytes(content)
    except OSError as error:
        raise BadInput(f"`{file}` cannot be written: {error.strerror}", hint="Choose another file") from None
    remark(f"Written to `{file}`")
