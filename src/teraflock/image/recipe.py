"""Recipes: what goes into an image, as data in `image/recipes/*.toml`. Pure except for reading those files.

A recipe that extends another includes everything from it. The digest covers the complete recipe, so it
changes with anything in the image. The image is cached under this digest.
"""

import hashlib
import platform
import tomllib
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

import msgspec

from teraflock.base.errors import unknown_name

JUPYTER_SERVICE: Final = "teraflock-jupyter.service"
BUILDER_VERSION: Final = 1
"""Part of the digest. Raise it when the builder produces a different image from the same recipe."""


class File(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    path: str
    content: str
    mode: int = 0o644


class Template(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file that the engine writes into each guest, from the keys of its configuration."""

    path: str
    content: str
    mode: int = 0o644
    when: tuple[str, ...] = ("create", "copy")
    ends_with_newline: bool = True


class Python(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A virtual environment and the packages installed in it."""

    folder: str
    packages: tuple[str, ...]


class Recipe(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: str
    title: str
    extends: str = ""
    suite: str = ""
    packages: tuple[str, ...] = ()
    enabled: tuple[str, ...] = ()
    masked: tuple[str, ...] = ()
    masked_generators: tuple[str, ...] = ()
    file: tuple[File, ...] = ()
    template: tuple[Template, ...] = ()
    python: Python | None = None


def known() -> tuple[str, ...]:
    """Return the names of all recipes."""
    return tuple(
        sorted(each.name.removesuffix(".toml") for each in _folder().iterdir() if each.name.endswith(".toml"))
    )


def read(name: str) -> Recipe:
    """Read a recipe with everything it extends. Raise `UnknownName` if it does not exist."""
    if name not in known():
        raise unknown_name("recipe", name, known())
    return whole(name, {each: (_folder() / f"{each}.toml").read_text("utf-8") for each in known()})


@cache
def serves_jupyter(name: str) -> bool:
    """Whether images of this recipe start Jupyter."""
    return JUPYTER_SERVICE in read(name).enabled


def whole(name: str, texts: dict[str, str]) -> Recipe:
    """Return the recipe with everything it extends."""
    own = msgspec.convert(tomllib.loads(texts[name]), Recipe)
    if not own.extends:
        return own
    base = whole(own.extends, texts)
    return Recipe(
        name=own.name,
        title=own.title,
        suite=own.suite or base.suite,
        packages=base.packages + own.packages,
        enabled=base.enabled + own.enabled,
        masked=base.masked + own.masked,
        masked_generators=base.masked_generators + own.masked_generators,
        file=base.file + own.file,
        template=base.template + own.template,
        python=_joined(base.python, own.python),
    )


def digest(recipe: Recipe) -> str:
    content = msgspec.json.encode((BUILDER_VERSION, platform.machine(), recipe))
    return hashlib.sha256(content).hexdigest()


def _joined(base: Python | None, own: Python | None) -> Python | None:
    """Combine two environments, which must use the same folder."""
    if base is None or own is None:
        return own or base
    if base.folder != own.folder:
        raise ValueError(f"a recipe has one Python environment, not {base.folder} and {own.folder}")
    return Python(folder=own.folder, packages=base.packages + own.packages)


def _folder() -> Traversable:
    return files("teraflock.image") / "recipes"
