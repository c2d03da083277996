"""Finds drivers: every folder next to this file that has a `site.py` and whose name does not begin with `_`.

The folder `clouds` has one kind of site per public cloud.
"""

import importlib
import os
from typing import Final

from teraflock.base.errors import unknown_name
from teraflock.drivers.clouds.table import CLOUDS
from teraflock.drivers.opening import DriverKind, Opening
from teraflock.instance.driver import ComputeDriver

FOLDER: Final = os.path.dirname(__file__)  # noqa: PTH120 -- settings are read at every start
DECLARED_IN: Final = "site"
CLOUD_FOLDER: Final = "clouds"


def kinds() -> tuple[str, ...]:
    """List the kinds of sites without loading their drivers."""
    names = (entry.name for entry in os.scandir(FOLDER) if entry.is_dir() and not entry.name.startswith("_"))
    found = {name for name in names if os.path.exists(f"{FOLDER}/{name}/{DECLARED_IN}.py")}  # noqa: PTH110
    return tuple(sorted({*found, *CLOUDS} - {CLOUD_FOLDER}))


def kind(name: str) -> DriverKind:
    """Load the driver of one kind of site and return its declaration."""
    if name not in kinds():
        raise unknown_name("kind of site", name, (each for each in kinds() if not kind(each).added_by))
    if name in CLOUDS:
        declared = importlib.import_module(f"teraflock.drivers.{CLOUD_FOLDER}.{DECLARED_IN}").kind_of(name)
    else:
        declared = importlib.import_module(f"teraflock.drivers.{name}.{DECLARED_IN}").DRIVER
    assert isinstance(declared, DriverKind), f"drivers/{name}/{DECLARED_IN}.py does not define DRIVER"
    return declared


def open_site(kind_name: str, opening: Opening) -> ComputeDriver:
    found = kind(kind_name)
    found.check(opening.name, opening.options)
    return found.open(opening)
