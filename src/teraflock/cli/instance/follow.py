"""A command from its launch to its end: its log is printed as it is written."""

import time
from typing import TYPE_CHECKING, Final

import click

from teraflock.base.errors import Unavailable
from teraflock.cli.instance.logs import news
from teraflock.cli.output import remark
from teraflock.cli.waiting import AWAY_SECONDS_MAX, is_at_rest, wait_for
from teraflock.client.instance import TookTooLong

if TYPE_CHECKING:
    from teraflock.client import Client
    from teraflock.wire.instance import InstanceAnswer

LOOK_AGAIN_SECONDS: Final = 0.5
NOT_BEGUN: Final = ("queued", "starting")


def has_ended(instance: "InstanceAnswer") -> bool:
    """The command ended, and its instance is at rest or gone."""
    return instance.exit_code is not None and instance.state in ("stopped", "gone")


def follow(client: "Client", launched: "InstanceAnswer", seconds_max: float) -> "InstanceAnswer":
    """Wait for the start, then print what the command writes until it ends. The instance as it is then."""
    began = time.monotonic()
    (seen,) = wait_for(
        lambda: [client.instances.get(launched.id)],
        lambda each: each.state not in NOT_BEGUN,
        seconds_max=seconds_max,
    )
    if seen.state == "failed":
        return seen
    try:
        return _followed(client, seen, began + seconds_max)
    except KeyboardInterrupt:
        remark("\nIt goes on without you; `tera logs` shows its log, `tera stop` stops it")
        raise


def _followed(client: "Client", seen: "InstanceAnswer", until: float) -> "InstanceAnswer":
    shown, answered = "", time.monotonic()
    while True:
        try:
            seen = client.instances.get(seen.id)
            text = client.instances.log(seen.id).text if seen.state not in NOT_BEGUN else shown
            answered = time.monotonic()
            click.echo(news(shown, text), nl=False)
            shown = text
            if has_ended(seen) or is_at_rest(seen):
                if shown and not shown.endswith("\n"):
                    click.echo()
                return seen
        except Unavailable:  # a server that is started again comes back
            if time.monotonic() - answered >= AWAY_SECONDS_MAX:
                raise
        if time.monotonic() >= until:
            raise TookTooLong(
                f"The command of `{seen.name}` has not ended in time",
                hint=f"It goes on; `tera logs {seen.name} --follow` shows its log, `--timeout` waits longer",
            )
        time.sleep(LOOK_AGAIN_SECONDS)
