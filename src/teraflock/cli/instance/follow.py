"""Follow a launched command: print its log as it is written, until it ends."""

import time
from typing import TYPE_CHECKING, Final

import click

from teraflock.base.errors import Unavailable
from teraflock.cli.instance.logs import news
from teraflock.cli.output import remark, write_output
from teraflock.cli.waiting import AWAY_SECONDS_MAX, is_at_rest, wait_for
from teraflock.client.instance import TookTooLong

if TYPE_CHECKING:
    from teraflock.client import Client
    from teraflock.wire.instance import InstanceAnswer

POLL_SECONDS: Final = 0.5
NOT_STARTED: Final = ("queued", "starting")


def has_ended(instance: "InstanceAnswer") -> bool:
    """Whether the command has ended and its instance is stopped or gone."""
    return instance.exit_code is not None and instance.state in ("stopped", "gone")


def follow(client: "Client", launched: "InstanceAnswer", seconds_max: float) -> "InstanceAnswer":
    """Wait for the start, print what the command writes until it ends, and return the instance."""
    began = time.monotonic()
    (seen,) = wait_for(
        lambda: [client.instances.get(launched.id)],
        lambda each: each.state not in NOT_STARTED,
        seconds_max=seconds_max,
    )
    if seen.state == "failed":
        return seen
    try:
        return _followed(client, seen, began + seconds_max)
    except KeyboardInterrupt:
        remark("\nThe command continues. `tera logs` shows its log, `tera stop` stops it")
        raise


def _followed(client: "Client", seen: "InstanceAnswer", until: float) -> "InstanceAnswer":
    shown, answered = "", time.monotonic()
    while True:
        try:
            seen = client.instances.get(seen.id)
            text = client.instances.log(seen.id).text if seen.state not in NOT_STARTED else shown
            answered = time.monotonic()
            write_output(news(shown, text))
            shown = text
            if has_ended(seen) or is_at_rest(seen):
                if shown and not shown.endswith("\n"):
                    click.echo()
                return seen
        except Unavailable:  # the server may be restarting
            if time.monotonic() - answered >= AWAY_SECONDS_MAX:
                raise
        if time.monotonic() >= until:
            raise TookTooLong(
                f"Timed out: the command of `{seen.name}` is still running",
                hint=f"Follow its log with `tera logs {seen.name} --follow`, or wait longer with `--timeout`",
            )
        time.sleep(POLL_SECONDS)
