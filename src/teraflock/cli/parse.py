"""Parse and check what users type: names, labels, commands, durations. Pure."""

import re
import shlex
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

from teraflock.base.errors import BadInput
from teraflock.words.text import SECONDS

_PART: Final = re.compile(r"(\d+)([dhms])")
_DURATION: Final = re.compile(r"(\d{1,9}[dhms])+")


def port_number(text: str, option: str) -> int:
    if not (text.isascii() and text.isdigit()) or len(text) > 9:
        raise BadInput(f"`{text[:40]}` is not a port", hint=f"Write {option} as a number from 1 to 65535")
    return int(text)


def parse_time(text: str, option: str, hint: str, *, kind: str = "time") -> datetime:
    """A time in ISO 8601, in UTC unless it has a zone. `kind` is what the error calls it."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise BadInput(f"`{option} {text}` is not a {kind}", hint=hint) from None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def parse_pairs(texts: Iterable[str], option: str) -> dict[str, str]:
    """`("team=vision", "run=7")` → a mapping. A repeated key is an error."""
    pairs: dict[str, str] = {}
    for text in texts:
        key, is_pair, value = text.partition("=")
        if not is_pair or not key:
            raise BadInput(f"`{option} {text}` is not a pair", hint=f"Write `{option} key=value`")
        if key in pairs:
            raise BadInput(f"`{option} {key}=…` is given twice", hint="Give each key once")
        pairs[key] = value
    return pairs


def parse_command(text: str) -> tuple[str, ...]:
    """Split a command into words as a shell would. No shell runs: `&&` and `|` are ordinary words."""
    try:
        return tuple(shlex.split(text))
    except ValueError as error:
        raise BadInput(
            f"`{text}` cannot be split into words: {str(error).lower()}", hint="Close every quote"
        ) from None


def unquoted_shell(text: str) -> str:
    """The first character of a command that needs a shell; empty if there is none."""
    quote = ""
    skip = False
    for character in text:
        if skip:
            skip = False
        elif character == "\\" and quote != "'":
            skip = True
        elif quote:
            if character == quote:
                quote = ""
            elif quote == '"' and character in "$`":
                return character
        elif character in "'\"":
            quote = character
        elif character in "$`;|&<>*":
            return character
    return ""


def parse_duration_seconds(text: str, option: str) -> int:
    """`90s`, `30m`, `2h`, `1d`, or several of them: `1h30m`."""
    if not _DURATION.fullmatch(text):
        raise BadInput(
            f"`{option} {text}` is not a duration", hint="Write `90s`, `30m`, `2h`, `1d` or `1h30m`"
        )
    return sum(int(count) * SECONDS[unit] for count, unit in _PART.findall(text))
