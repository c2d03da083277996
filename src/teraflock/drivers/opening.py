"""What a driver declares about itself, and what it receives when a site is opened."""

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
    """The name, options and folder of a site that is being opened."""

    name: str
    options: Mapping[str, str]
    """The site's options from the settings or the database."""
    folder: Path
    """Folder in which the driver may keep files."""
    mark: str
    """Label on everything that this installation creates at the site."""
    clock: Clock
    account_secret: Callable[[str], str] | None = None
    """Returns the stored credentials of an account. None: there are no accounts."""
    derive: Callable[[str], bytes] | None = None
    """Returns 32 secret bytes for a purpose, always the same for one installation."""

    def option(self, name: str, default: T, convert: Callable[[str], T]) -> T:
        """Return the value of an option, or the default if it is missing or empty."""
        text = self.options.get(name, "")
        if not text:
            return default
        try:
            return convert(text)
        except ValueError:
            raise BadInput(
                f"Invalid value `{text[:80]}` for the option `{name}` of the site `{self.name}`"
            ) from None

    def secret(self, name: str) -> str:
        """Read the secret that an option refers to: `env:VARIABLE`, `file:PATH` or `account:NAME`."""
        kind, _, where = self.options.get(name, "").partition(":")
        if kind == "account" and self.account_secret is not None:
            return self.account_secret(where.partition(":")[0])
        if kind == "env" and where in os.environ:
            return os.environ[where]
        try:
            if kind == "file":
                return Path(where).read_text("utf-8").strip()
        except OSError as error:
            raise BadInput(
                f"Cannot read the secret `{where}` of the site `{self.name}`: {error.strerror}"
            ) from None
        raise BadInput(
            f"The site `{self.name}` needs the secret `{name}`",
            hint=f"Set `{name}` to an existing `env:VARIABLE` or `file:PATH`",
        )


class DriverKind(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of site, declared as `DRIVER` in `drivers/<kind>/site.py`."""

    summary: str
    options: Mapping[str, str]
    """Description of each option, by name."""
    secrets: frozenset[str] = frozenset()
    """Names of options that refer to a secret. Their values are never the secret itself."""
    open: Callable[[Opening], ComputeDriver]
    added_by: str = ""
    """The command that adds sites of this kind. Empty: `tera site add`."""

    def check(self, site: str, options: Mapping[str, str]) -> None:
        """Reject unknown options, and secrets written in plain text."""
        for name, value in options.items():
            if name not in self.options:
                raise unknown_name(
                    "option", name, self.options, see=f"`{site}` has: {', '.join(self.options) or 'none'}"
                )
            if name in self.secrets and not value.startswith(("env:", "file:", "account:")):
                raise BadInput(
                    f"The option `{name}` of the site `{site}` is a secret and cannot be written in plain text",
                    hint="Name the variable or file that contains it: `env:VARIABLE` or `file:PATH`",
                )


def truth(text: str) -> bool:
    """Parse `true` or `false`."""
    if text.lower() not in ("true", "false"):
        raise ValueError(text)
    return text.lower() == "true"
