"""Parse and check what users type: names, labels, commands, durations. Pure."""

import re
import shlex
from collections.abc import Iterable
from typing import Final

from teraflock.base.errors import BadInput
from teraflock.base.limits import NAME
from teraflock.words.text import SECONDS

_PART: Final = re.compile(r"(\d+)([dhms])")
_DURATION: Final = re.compile(r"(\d{1,9}[dhms])+")


def check_name(name: str, what: str = "name") -> str:
    """Check a name before the request, for a better hint. The server checks it again."""
    if not re.fullmatch(NAME, name):
        raise BadInput(
            f"`{name}` cannot be the {what}",
            hint="Use up to 63 of `a-z`, `0-9` and `-`. Start with a letter and do not end with `-`"
            + (". It becomes the host name" if what == "name" else ""),
        )
    return name


def port_number(text: str, option: str) -> int:
    if not (text.isascii() and text.isdigit()) or len(text) > 9:
        raise BadInput(f"`{text[:40]}` is not a port", hint=f"Write {option} as a number from 1 to 65535")
    return int(text)


def check_member_name(name: str) -> str:
    """Check a member's name before the request. The server checks it again."""
    if not 0 < len(name) <= 255 or not name.isprintable() or " " in name or name.startswith("mem_"):
        raise BadInput(
            f"`{name}` cannot be the name of a member",
            hint="Use an e-mail address or a short name without spaces",
        )
    return name


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
