"""`tera shapes`: named sizes and how many of each are free."""

from typing import Final

import click

from teraflock.base.quantities import bytes_text
from teraflock.cli.connection import connected, mark_simulated
from teraflock.cli.options import json_option, project_option
from teraflock.cli.output import columns, remark, write_json
from teraflock.cli.table import Column, render
from teraflock.cli.words import cards_text

HELP: Final = """Named sizes of instances, made from the hosts there are, and how many of each could be launched now.

\b
Examples:
  tera shapes
  tera launch --shape cpu-4 --wait
"""
COLUMNS: Final = (
    Column("SHAPE"),
    Column("GPUS", worth=8),
    Column("VCPUS", right=True, worth=6),
    Column("RAM", right=True, worth=6),
    Column("DISK", right=True, worth=5),
    Column("FREE", right=True),
)


@click.command(help=HELP)
@click.option("--free", "only_free", is_flag=True, help="Only those that could be launched now.")
@project_option
@json_option
def command(project: str | None, only_free: bool, as_json: bool) -> None:
    with connected(project) as client:
        found = [each for each in client.shapes.list() if each.free or not only_free]
        mark_simulated(client)
    if as_json:
        write_json(found)
        return
    if not found:
        remark(
            "No shape is free" if only_free else "No shape: there is no host yet; `tera host list` shows them"
        )
        return
    rows = [
        [
            each.name,
            cards_text(each.shape),
            str(each.shape.vcpus),
            bytes_text(each.shape.ram_bytes),
            bytes_text(each.shape.disk_bytes),
            f"{each.free:,}",
        ]
        for each in found
    ]
    click.echo(render(COLUMNS, rows, columns()))
