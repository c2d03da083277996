"""Options that many commands of the cloud have alike."""

from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

from teraflock.base.errors import BadInput

REASON_CHARACTERS_MAX: Final = 500
F = TypeVar("F", bound=Callable[..., Any])

json_option = click.option("--json", "as_json", is_flag=True, help="JSON on stdout.")
project_option = click.option(
    "--project", metavar="NAME", envvar="TERA_PROJECT", help="A project's name or id; else the key's own."
)
organisation_option = click.option(
    "--org", "organisation", default="", metavar="NAME", help="Another organisation; for operators."
)


def checked_reason(_: click.Context, __: click.Parameter, text: str | None) -> str:
    """One line that can be shown to the tenant; empty: the option was left out."""
    if text is None:
        return ""
    if not text.strip() or not text.isprintable() or len(text) > REASON_CHARACTERS_MAX:
        raise BadInput(
            "`--reason` is one line of text",
            hint=f"Write up to {REASON_CHARACTERS_MAX} characters; the tenant sees them",
        )
    return text


reason_option = click.option(
    "--reason",
    callback=checked_reason,
    metavar="TEXT",
    help="For operators: act on an instance of any tenant. The tenant sees this text.",
)
yes_option = click.option("--yes", is_flag=True, help="Do not ask.")


def wait_option(default: bool, seconds_max: float = 600.0) -> Callable[[F], F]:
    """`--wait`, `--no-wait`: whether the command returns when the work is done, or when it is taken."""

    def decorate(function: F) -> F:
        function = click.option(
            "--timeout",
            type=click.FloatRange(0, 86400),
            default=seconds_max,
            show_default=True,
            metavar="SECONDS",
            help="Wait no longer than this.",
        )(function)
        return click.option(
            "--wait/--no-wait", default=default, show_default=True, help="Return when it is done."
        )(function)

    return decorate
