"""`tera label`: change the labels of instances."""

from typing import Final

import click

from teraflock.base.errors import BadInput
from teraflock.base.names import check_label_key
from teraflock.cli.connection import connected, mark_simulated
from teraflock.cli.options import json_option, project_option
from teraflock.cli.output import write_json
from teraflock.cli.table import printable
from teraflock.wire.instance import ChangeRequest
from teraflock.words.text import details_text

HELP: Final = """Change the labels of an instance: `key=value` sets one, `key-` removes one.

Without changes, show the labels. Earlier charges keep the old labels in `tera bill --by label`.

\b
Examples:
  tera label web team=vision run=7
  tera label web run-
  tera label web
"""


@click.command(help=HELP)
@click.argument("name")
@click.argument("changes", nargs=-1, metavar="[KEY=VALUE|KEY-]...")
@project_option
@json_option
def command(name: str, changes: tuple[str, ...], project: str | None, as_json: bool) -> None:
    wished = parse_changes(changes)
    with connected(project) as client:
        instance = (
            client.instances.change(name, ChangeRequest(labels=wished))
            if wished
            else client.instances.get(name)
        )
        mark_simulated(client)
    if as_json:
        write_json(instance)
    else:
        click.echo(f"{instance.name}: {printable(details_text(instance.labels)) or 'no labels'}")


def parse_changes(texts: tuple[str, ...]) -> dict[str, str | None]:
    """`("team=vision", "run-")` → what to set, and None for what to remove."""
    changes: dict[str, str | None] = {}
    for text in texts:
        key, is_pair, value = text.partition("=")
        if not is_pair and not text.endswith("-"):
            raise BadInput(
                f"`{text}` is not a label change", hint="Write `key=value`, or `key-` to remove it"
            )
        key = key if is_pair else text[:-1]
        if not key:
            raise BadInput(
                f"`{text}` does not name a label", hint="Write `key=value`, or `key-` to remove it"
            )
        check_label_key(key)
        if key in changes:
            raise BadInput(f"The label `{key}` is given twice", hint="Give each label once")
        changes[key] = value if is_pair else None
    return changes
