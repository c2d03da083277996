"""Options that several commands share."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from teraflock.base.errors import BadInput
from teraflock.base.limits import REASON_CHARACTERS_MAX

F = TypeVar("F", bound=Callable[..., Any])

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
project_option = click.option(
    "--project", metavar="NAME", envvar="TERA_PROJECT", help="The project. [default: the project of your key]"
)
organisation_option = click.option(
    "--org",
    "organisation",
    default="",
    metavar="NAME",
    help="For operators: the organisation. [default: yours]",
)


def checked_reason(_: click.Context, __: click.Parameter, text: str | None) -> str:
    """Check that the reason is one line of printable text. Empty if the option was not given."""
    if text is None:
        return ""
    if not text.strip() or not text.isprintable() or len(text) > REASON_CHARACTERS_MAX:
        raise BadInput(
            "`--reason` must be one line of text",
            hint=f"Use at most {REASON_CHARACTERS_MAX} characters. The tenant sees them",
        )
    return text


reason_option = click.option(
    "--reason",
    callback=checked_reason,
    metavar="TEXT",
    help="For operators: act on any tenant's instance. The tenant sees this text.",
)
yes_option = click.option("--yes", is_flag=True, help="Skip the confirmation.")


def with_options(*options: Callable[[Any], Any]) -> Callable[[F], F]:
    """Add several options to a command, in this order."""

    def decorate(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


def wait_option(default: bool, seconds_max: float = 600.0) -> Callable[[F], F]:
    """`--wait` returns when the work is done, `--no-wait` as soon as the server accepted it."""

    def decorate(function: F) -> F:
        function = click.option(
            "--timeout",
            type=click.FloatRange(0, 86400),
            default=seconds_max,
            show_default=True,
            metavar="SECONDS",
            help="The longest time to wait.",
        )(function)
        return click.option(
            "--wait/--no-wait", default=default, show_default=True, help="Wait until it is done."
        )(function)

    return decorate


class NumberOf(click.ParamType[float]):
    """A number with or without its unit, such as `300` or `300W`. Of units that end alike, the longer comes first."""

    name = "number"

    def __init__(self, units: Mapping[str, float]) -> None:
        self._units = units

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        text, size = str(value).strip(), 1.0
        for unit, its_size in self._units.items():
            if text.casefold().endswith(unit.casefold()):
                text, size = text[: -len(unit)], its_size
                break
        try:
            return float(text) * size
        except ValueError:
            self.fail(f"`{value}` is not a number, with or without {' or '.join(self._units)}", param, ctx)


class LargeNumber(click.ParamType[float]):
    """A number such as `1281167`, `1,281,167`, `1.28M` or `500k`."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        from teraflock.base.amounts import parse_large_number

        option = (param.name if param else "") or "number"
        return float(value) if isinstance(value, int | float) else parse_large_number(str(value), option)
