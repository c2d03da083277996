"""`tera host slice`: divide a card into slices, or make it whole again."""

from typing import Final

import click

from teraflock.base.errors import BadInput, Refused
from teraflock.cli.connection import connected
from teraflock.cli.options import json_option
from teraflock.cli.table import write_list
from teraflock.cli.waiting import wait
from teraflock.client import Client
from teraflock.wire.host import SlicingAnswer
from teraflock.words.table import Field, Fields

WAIT_SECONDS_MAX: Final = 60.0
FIELDS: Final[Fields[SlicingAnswer]] = (
    Field("CARD", lambda each: each.card),
    Field("GPU", lambda each: each.gpu),
    Field("SLICES", lambda each: " ".join(each.profiles) or "whole", flexible=True),
    Field("STATE", lambda each: each.state),
    Field("PROBLEM", lambda each: each.problem, flexible=True),
)


@click.command("slice")
@click.argument("name")
@click.argument("card", required=False)
@click.option(
    "--profile", "profiles", multiple=True, metavar="PROFILE", help="A slice, such as `3g.71gb`. Repeat it."
)
@click.option("--whole", is_flag=True, help="Make the card whole again.")
@json_option
def slice_host(name: str, card: str | None, profiles: tuple[str, ...], whole: bool, as_json: bool) -> None:
    """Divide a card of a host into slices (MIG). Without a CARD, list the cards that were divided.

    CARD is the number of the card on its host, from 0, or its PCI address. Each slice has its own memory and
    processors, and counts as a card of its own model: `tera launch --gpu 'H200 1g.18gb'`. Nobody may use the card
    while it is divided.

    \b
    Examples:
      tera host slice lab2 0 --profile 3g.71gb --profile 3g.71gb
      tera host slice lab2 0 --whole
      tera host slice lab2
    """
    if card is not None and bool(profiles) == whole:
        raise BadInput(
            "Say how to divide the card", hint="Use `--profile 3g.71gb` once or several times, or `--whole`"
        )
    with connected() as client:
        found = client.hosts.slicings(name) if card is None else _divided(client, name, card, profiles)
    write_list(found, FIELDS, as_json=as_json, empty="No card of this host was divided")


def _divided(client: Client, name: str, card: str, profiles: tuple[str, ...]) -> tuple[SlicingAnswer, ...]:
    client.hosts.divide(name, card, profiles)
    found = wait(
        lambda: client.hosts.slicings(name),
        lambda seen: all(each.state != "waiting" for each in seen),
        lambda seen: "dividing the card",
        seconds_max=WAIT_SECONDS_MAX,
    )
    for each in found:
        if each.state == "refused":
            raise Refused(each.problem, hint="The card stays as it is. `tera host show` lists who holds it")
    return found
