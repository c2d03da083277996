"""The data folder of Teraflock: `TERA_HOME`, or the platform's folder for user data.

Paths are strings here and in `local.py`: every command loads these modules, and pathlib adds 7 ms to the cold start.
"""

import os
import sys
from typing import Final

DATABASE_NAME: Final = "tera.db"
RATES_NAME: Final = "rates.csv"


def home() -> str:
    if chosen := os.environ.get("TERA_HOME"):
        return _expanded(chosen)
    if sys.platform == "darwin":
        return _expanded("~/Library/Application Support/teraflock")
    if sys.platform == "win32":
        return _joined(os.environ.get("LOCALAPPDATA") or _expanded("~/AppData/Local"), "teraflock")
    return _joined(os.environ.get("XDG_DATA_HOME") or _expanded("~/.local/share"), "teraflock")


def _expanded(path: str) -> str:
    return os.path.expanduser(path)  # noqa: PTH111 -- as above


def _joined(folder: str, name: str) -> str:
    return os.path.join(folder, name)  # noqa: PTH118 -- as above
