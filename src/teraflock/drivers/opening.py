"""What a driver declares about itself, and what it is given when one of its sites is opened."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

import msgspec

from teraflock.base.clock import Clock
from teraflock.base.errors import BadInput, unknown_name
from teraflock.instance.driver import ComputeDriver

T = TypeVar("T")


class Opening(msgspec.Struct, frozen=True, kw_only=True):
    """One site, about to be opened."""

    name: str
    options: Mapping[str, str]
    """As the settings or the database have them."""
    folder: Path
    """Where the driver may keep files."""
    mark: str
    """Marks everything that this installation makes at the site."""
    clock: Clock

    def option(self, name: str, default: T, convert: Callable[[str], T]) -> T:
        """The value of an option, or the default where it is missing or empty."""
        text = self.options.get(name, "")
        if not text:
            return default
        try:
            return convert(text)
        except ValueError:
            raise BadInput(f"The option `{name}` of the site `{self.name}` cannot be `{text[:80]}`") from None

    def secret(self, name: str) -> str:
        """The secret that an option refers to: `env:VARIABLE` or `file:PATH`."""
        kind, _, where = self.options.get(name, "").partition(":")
        if kind == "env" and where in os.environ:
            return os.environ[where]
        try:
            if kind == "file":
                return Path(where).read_text("utf-8").strip()
        except OSError as error:
            raise BadInput(
                f"The secret `{where}` of the site `{self.name}` cannot be read: {error.strerror}"
            ) from None
        raise BadInput(
            f"The site `{self.name}` needs the secret `{name}`",
            hint=f"Set `{name}` to `env:VARIABLE` or `file:PATH`, which has to exist",
        )


class DriverKind(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of site, declared as `DRIVER` in `drivers/<kind>/site.py`."""

    summary: str
    options: Mapping[str, str]
    """Every option, and what it means."""
    secrets: frozenset[str] = frozenset()
    """Options that refer to a secret and never are one."""
    open: Callable[[Opening], ComputeDriver]

    def check(self, site: str, options: Mapping[str, str]) -> None:
        """Refuse options that the driver does not know, and secrets that are written out."""
        for name, value in options.items():
            if name not in self.options:
                raise unknown_name(f"option of the site `{site}`", name, self.options)
            if name in self.secrets and not value.startswith(("env:", "file:")):
                raise BadInput(
                    f"The option `{name}` of the site `{site}` is a secret and must not be written here",
                    hint="Name the variable or file that has it: `env:VARIABLE` or `file:PATH`",
                )


def truth(text: str) -> bool:
    """`true` or `false`."""
    if text.lower() not in ("true", "false"):
        raise ValueError(text)
    return text.lower() == "true"
