"""Commands in documents and what they print. `python -m tests.documents.transcripts` updates them.

A block that begins with ```console holds one command after `$ ` and below it, exactly, what a new user sees: a fresh
home, a terminal of 110 columns, stdout and stderr together, on the day below.
"""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from shlex import split
from typing import Final

ROOT: Final = Path(__file__).parents[2]
DOCUMENTS: Final = (ROOT / "README.md", ROOT / "docs" / "planning.md", ROOT / "docs" / "offers-and-plans.md")
DAY: Final = "2026-11-15"
BLOCK: Final = re.compile(r"```console\n\$ (?P<command>[^\n]+)\n(?P<printed>.*?)```", re.DOTALL)

ON_THE_DAY: Final = """
import sys
from datetime import datetime
from teraflock.base.clock import SystemClock
day = datetime.fromisoformat(sys.argv[1] + "T12:00:00+00:00")
SystemClock.now = lambda self: day
sys.argv = ["tera", *sys.argv[2:]]
from teraflock.cli.main import run
run()
"""


def transcripts(document: Path) -> Iterator[tuple[str, str]]:
    for block in BLOCK.finditer(document.read_text("utf-8")):
        yield block["command"], block["printed"]


def printed_by(command: str) -> str:
    words = split(command)
    assert words[0] == "tera", f"only `tera` is run: {command}"
    with tempfile.TemporaryDirectory() as home:
        done = subprocess.run(
            [sys.executable, "-c", ON_THE_DAY, DAY, *words[1:]],
            env={**os.environ, "TERA_HOME": home, "COLUMNS": "110", "NO_COLOR": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
    return done.stdout


def rewritten(document: Path) -> str:
    return BLOCK.sub(
        lambda block: f"```console\n$ {block['command']}\n{printed_by(block['command'])}```",
        document.read_text("utf-8"),
    )


if __name__ == "__main__":
    for each in DOCUMENTS:
        each.write_text(rewritten(each), "utf-8")
