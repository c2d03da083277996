"""This program with another version number."""

from pathlib import Path

from teraflock import __version__
from teraflock.app.joining import packing


def older(folder: Path, version: str) -> Path:
    """This program with another version number, for `PYTHONPATH`."""
    made = folder / "teraflock"
    made.mkdir(parents=True)
    for each in packing.FOLDER.iterdir():
        if each.name not in ("__init__.py", "__pycache__"):
            (made / each.name).symlink_to(each)
    text = (packing.FOLDER / "__init__.py").read_text()
    (made / "__init__.py").write_text(text.replace(f'"{__version__}"', f'"{version}"'))
    return folder
