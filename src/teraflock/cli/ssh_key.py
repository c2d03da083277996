"""`tera ssh-key`: list, add and remove the SSH keys of members."""

from typing import TYPE_CHECKING, Final

import click

from teraflock.base.errors import BadInput
from teraflock.cli.connection import connected
from teraflock.cli.lazy import NamingGroup
from teraflock.cli.options import json_option
from teraflock.cli.output import tell
from teraflock.cli.pages import names_of
from teraflock.cli.table import write_list
from teraflock.wire.ssh_key import SshKeyRequest
from teraflock.words.ssh_key import fields

if TYPE_CHECKING:
    from typing import TextIO

HELP: Final = """List, add and remove your SSH keys. Every instance that you launch accepts them.

Instances that exist already keep the keys that they have.

\b
Examples:
  tera ssh-key add ~/.ssh/id_ed25519.pub
  tera ssh-key list
  tera ssh-key remove ssh_01j…
"""
command = NamingGroup("command", help=HELP)


@command.command("list", help="List your SSH keys. Owners see those of all members.")
@json_option
def list_keys(as_json: bool) -> None:
    with connected() as client:
        found = client.ssh_keys.list()
        members = {} if as_json else names_of(client.members.list)
    write_list(
        found, fields(members), as_json=as_json, empty="No SSH keys. Add one with `tera ssh-key add FILE`"
    )


@command.command(help="Add the public key in FILE. `-` reads it from standard input.")
@click.argument("file", type=click.File("r", encoding="utf-8"))
@click.option("--name", default="", metavar="TEXT", help="[default: the comment at the end of the key]")
@json_option
def add(file: "TextIO", name: str, as_json: bool) -> None:
    try:
        text = file.read(10_000)
    except UnicodeDecodeError:
        raise BadInput(f"`{file.name}` is not a text file", hint="Give a file that ends in `.pub`") from None
    if "PRIVATE KEY" in text:
        raise BadInput(
            f"`{file.name}` is a private key, which must stay with you",
            hint="Give the public key instead: the file with the same name and `.pub` at the end",
        )
    with connected() as client:
        made = client.ssh_keys.add(SshKeyRequest(public_key=text.strip(), name=name))
    tell(made, f"Added SSH key `{made.name}`: {made.id}", as_json)


@command.command(help="Remove a key. Instances that have it keep it.")
@click.argument("id")
@json_option
def remove(id: str, as_json: bool) -> None:
    with connected() as client:
        removed = client.ssh_keys.remove(id)
    tell(removed, f"Removed SSH key `{removed.name}`", as_json)
