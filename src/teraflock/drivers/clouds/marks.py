"""What a new machine is given, and the marks by which it is found again: in a label, a name or tags. Pure."""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Final

import msgspec

from teraflock.instance.driver import Machine, Rental

MARK: Final = "teraflock"
TOKEN: Final = "teraflock-token"  # noqa: S105 -- the name of a tag


class Boot(msgspec.Struct, frozen=True, kw_only=True):
    """What a new machine is given."""

    mark: str
    machine: Machine
    login_key: str
    """Public key with which the server logs in, to probe the machine and run commands."""
    cloud_config: str
    """First-boot configuration for clouds with cloud-init."""
    script: str
    """First-boot shell script, for clouds without cloud-init."""
    ends_at: datetime | None = None
    """When the provider ends the machine by itself, if it can: a backstop if this installation is lost."""

    @property
    def rental(self) -> Rental:
        assert self.machine.rental is not None, "the engine rents only what has a rental"
        return self.machine.rental

    @property
    def token(self) -> str:
        return self.rental.token

    @property
    def label(self) -> str:
        """Mark and token in one word, for clouds with a single free text."""
        return f"tf.{self.mark}.{self.token}"

    @property
    def name(self) -> str:
        """Mark and token as a host name, for clouds whose names allow nothing else."""
        return machine_name(self.mark, self.token)

    @property
    def tags(self) -> dict[str, str]:
        return {MARK: self.mark, TOKEN: self.token}


def read_label(mark: str, text: str) -> tuple[str, str] | None:
    """The instance id and the token in a label of ours; None: it is not ours."""
    begin = f"tf.{mark}."
    token = text.removeprefix(begin)
    return (token.partition(".")[0], token) if text.startswith(begin) and token else None


def plain(mark: str) -> str:
    """The mark in names that allow only letters, digits and hyphens."""
    return mark.lower().replace("_", "-")


def machine_name(mark: str, token: str) -> str:
    return f"tf-{plain(mark)}-{token.removeprefix('ins_').replace('.', '-')}"


def read_name(mark: str, name: str, *, is_part: bool = False) -> str:
    """The token in a name of ours; empty: it is not ours. `is_part`: the provider may have added an ending."""
    more = "(?:-.*)?" if is_part else ""
    found = re.fullmatch(rf"tf-{re.escape(plain(mark))}-([0-9a-z]+)-(\d+)-(\d+){more}", name)
    return f"ins_{found[1]}.{found[2]}.{found[3]}" if found else ""


def read_tags(mark: str, tags: Mapping[str, str]) -> str:
    """The token in tags of ours; empty: they are not ours."""
    return tags.get(TOKEN, "") if tags.get(MARK) == mark else ""
