"""Where Teraflock keeps its data: `TERA_HOME`, else the platform's folder for a user's data."""

import os
import sys
from pathlib import Path
from typing import Final

DATABASE_NAME: Final = "tera.db"
RATES_NAME: Final = "rates.csv"


def home() -> Path:
    if chosen := os.environ.get("TERA_HOME"):
        return Path(chosen).expanduser()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "teraflock"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "teraflock"
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "teraflock"
