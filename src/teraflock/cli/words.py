"""What users write and what they read of the cloud: labels, sizes, ages. All pure."""

import re
import shlex
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from teraflock.base.clock import at_microseconds
from teraflock.base.errors import BadInput
from teraflock.base.money import amount_text, decimal_text
from teraflock.base.quantities import bytes_text

if TYPE_CHECKING:
    from teraflock.wire.instance import InstanceAnswer
    from teraflock.wire.shape import ShapeAnswer

SIMULATED: Final = "SIMULATED"
"""Stands beside everything that does not exist."""
_NAME: Final = re.compile(r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?")
_PART: Final = re.compile(r"(\d+)([dhms])")
_DURATION: Final = re.compile(r"(\d{1,9}[dhms])+")
_SECONDS: Final = {"d": 86_400, "h": 3600, "m": 60, "s": 1}
_AGES: Final = ((86400 * 2, 86400, "d"), (3600 * 2, 3600, "h"), (60 * 2, 60, "min"), (0, 1, "s"))


def check_name(name: str, what: str = "name") -> str:
    """Refused here already, so that the hint can teach. The server checks it again."""
    if not _NAME.fullmatch(name):
        raise BadInput(
            f"`{name}` cannot be the {what}",
            hint="Up to 63 letters a-z, digits and `-`, a letter first, no `-` at the end"
            + (": it becomes the host name" if what == "name" else ""),
        )
    return name


def check_member_name(name: str) -> str:
    """Refused here already, as above."""
    if not 0 < len(name) <= 255 or not name.isprintable() or " " in name or name.startswith("mem_"):
        raise BadInput(
            f"`{name}` cannot be the name of a member",
            hint="Use an e-mail address or a short name without spaces",
        )
    return name


def parse_pairs(texts: Iterable[str], option: str) -> dict[str, str]:
    """`("team=vision", "run=7")` → a mapping; what stands twice is a mistake."""
    pairs: dict[str, str] = {}
    for text in texts:
        key, is_pair, value = text.partition("=")
        if not is_pair or not key:
            raise BadInput(f"`{option} {text}` is no pair", hint=f"Write `{option} key=value`")
        if key in pairs:
            raise BadInput(f"`{option} {key}=…` is given twice")
        pairs[key] = value
    return pairs


def parse_command(text: str) -> tuple[str, ...]:
    """The words of a command, split as a shell would. No shell is run: `&&` and `|` are words like others."""
    try:
        return tuple(shlex.split(text))
    except ValueError as error:
        raise BadInput(f"`{text}` cannot be split into words: {str(error).lower()}") from None


def unquoted_shell(text: str) -> str:
    """The first character of a command that only a shell would understand; empty where there is none."""
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
        raise BadInput(f"`{option} {text}` is no duration", hint="Write `90s`, `30m`, `2h`, `1d` or `1h30m`")
    return sum(int(count) * _SECONDS[unit] for count, unit in _PART.findall(text))


def duration_text(seconds: int) -> str:
    """`5400` → `1h30m`."""
    parts = []
    for unit, length in _SECONDS.items():
        count, seconds = divmod(seconds, length)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"


def age_text(then: datetime, now: datetime) -> str:
    """`90 s`, `5 min`, `47 h`, `3 d`."""
    seconds = max(0, int((now - then) / timedelta(seconds=1)))
    for least, unit_seconds, unit in _AGES:
        if seconds >= least:
            return f"{seconds // unit_seconds} {unit}"
    raise AssertionError("the last unit begins at nothing")


def time_text(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S}"


def size_text(shape: "ShapeAnswer") -> str:
    """`4 vCPU, 16 GB`."""
    return f"{shape.vcpus} vCPU, {bytes_text(shape.ram_bytes)}"


def cards_text(shape: "ShapeAnswer") -> str:
    """`2× V100-SXM2`, as the offers have it."""
    return f"{shape.gpus}× {shape.gpu}" if shape.gpus else ""


def state_text(instance: "InstanceAnswer") -> str:
    """The state, what is being done, how a command ended; and whether any of it is real."""
    words = [instance.state]
    if instance.operation and instance.state not in ("queued", "starting", "stopping", "deleting"):
        words.append(f"({instance.operation})")
    if instance.exit_code is not None:
        words.append(f"(exit {instance.exit_code})")
    if instance.user_data and instance.user_data.exit_code:
        words.append(f"(user-data: exit {instance.user_data.exit_code})")
    if instance.simulated:
        words.append(SIMULATED)
    return " ".join(words)


def roles_text(roles: Mapping[str, str], names: Mapping[str, str]) -> str:
    """`owner in every project, viewer in speech`; `names` by the ids of projects."""
    return ", ".join(
        f"{role} in {names.get(project, project) or 'every project'}" for project, role in roles.items()
    )


def details_text(details: Mapping[str, object]) -> str:
    """`spent=3.25USD stop_at=…`: amounts in the currency beside them, times and sizes as people read them."""
    currency = str(details.get("currency", ""))
    has_amount = any(key.endswith("_micros") for key in details)
    return " ".join(
        _pair_text(key, value, currency)
        for key, value in details.items()
        if not (key == "currency" and has_amount)
    )


def _pair_text(key: str, value: object, currency: str = "") -> str:
    if key.startswith("micros_per_") and isinstance(value, int):
        return f"per_{key.removeprefix('micros_per_')}={decimal_text(value, 4)}{currency}"
    if key.endswith("_micros") and isinstance(value, int):
        return f"{key.removesuffix('_micros')}={amount_text(value, currency).replace(' ', '')}"
    if key.endswith("_us") and isinstance(value, int):
        return f"{key.removesuffix('_us')}={time_text(at_microseconds(value)).replace(' ', 'T')}Z"
    if key.endswith("_bytes") and isinstance(value, int):
        return f"{key.removesuffix('_bytes')}={bytes_text(value).replace(' ', '')}"
    text = "-" if value is None else str(value)
    return f"{key}={shlex.quote(text) if ' ' in text else text}"
