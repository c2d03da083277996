"""`tera doctor`: check this machine and report what to repair."""

from typing import TYPE_CHECKING, Final

import click

from teraflock.app.installation.doctor import examine
from teraflock.app.installation.health import is_well
from teraflock.app.installation.places import Places
from teraflock.cli.options import json_option
from teraflock.cli.output import remark, write_json
from teraflock.cli.table import Column, write_rows
from teraflock.cli.waiting import PhaseLine

if TYPE_CHECKING:
    from teraflock.app.installation.health import Finding

HELP: Final = """Check everything that Teraflock needs on this machine, and report how to repair what is wrong.

The exit code is 1 if something is wrong. Checks marked `warning` work with limitations.

\b
Examples:
  tera doctor
  tera doctor --json
"""
COLUMNS: Final = (Column("CHECK"), Column("VERDICT"), Column("FOUND", flexible=True))


@click.command(help=HELP)
@json_option
def command(as_json: bool) -> None:
    with PhaseLine() as line:
        findings = examine(Places(), line)
    if as_json:
        write_json(findings)
    else:
        _write(findings)
    if not is_well(findings):
        raise SystemExit(1)


def _write(findings: "list[Finding]") -> None:
    rows = [
        [each.check, each.verdict.upper() if each.verdict == "wrong" else each.verdict, each.seen]
        for each in findings
    ]
    write_rows(COLUMNS, rows)
    repairs = [each for each in findings if each.repair]
    if repairs:
        remark("")
    for each in sorted(repairs, key=lambda each: each.verdict != "wrong"):
        remark(
            f"{each.check}: {each.seen}\n  {'repair' if each.verdict == 'wrong' else 'advice'}: {each.repair}"
        )
    count = sum(each.verdict == "wrong" for each in findings)
    remark(f"\n{count} problem{'s' * (count != 1)} found" if count else "\nNo problems found")
