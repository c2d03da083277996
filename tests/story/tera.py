"""`tera` as a user runs it: as a process with its own home."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from tests.story import warm

SECONDS_MAX = (
    60  # long enough for a machine that is busy with other tests; a command takes less than a second
)


class Done(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def hint(self) -> str:
        return self.err.partition("\nhint: ")[2].strip()


class Tera:
    def __init__(self, home: Path) -> None:
        self.home = home

    def run(
        self,
        *words: str | Path,
        columns: int = 100,
        more: dict[str, str] | None = None,
        before: Callable[[], None] | None = None,
    ) -> Done:
        """Run to the end, and check that no traceback is shown."""
        command, environment = self.command(*words), self.environment(columns) | (more or {})
        if before is None and command == Tera.command(*words) and warm.suits(environment):
            done = warm.run([*map(str, words)], environment, seconds_max=SECONDS_MAX)
            return checked(done.returncode, done.stdout, done.stderr)
        done = subprocess.run(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=SECONDS_MAX,
            check=False,
            preexec_fn=before,
        )
        return checked(done.returncode, done.stdout, done.stderr)

    def start(self, *words: str | Path) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            self.command(*words),
            env=self.environment(100),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def ok(self, *words: str | Path, columns: int = 100) -> Done:
        done = self.run(*words, columns=columns)
        assert done.code == 0, f"{done.err}\n{done.out}"
        return done

    def offers(self, *words: str) -> list[dict[str, Any]]:
        """The output of `tera offers … --json`."""
        offers: list[dict[str, Any]] = self.ok("offers", *words, "--json").json
        return offers

    @staticmethod
    def command(*words: str | Path) -> list[str]:
        return [sys.executable, "-m", "teraflock", *map(str, words)]

    def environment(self, columns: int) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("TERA_", "_TERA_"))}
        own = {
            "TERA_HOME": str(self.home),
            "COLUMNS": str(columns),
            "NO_COLOR": "1",
            "PYTHONWARNINGS": "error",
        }
        return kept | own


def checked(code: int, out: bytes, err: bytes) -> Done:
    done = Done(code, out.decode(errors="replace"), err.decode(errors="replace"))
    for word in ("Traceback", "Internal error", "Exception ignored", "Warning"):
        assert word not in done.err, done.err
    return done


def finished(process: "subprocess.Popen[bytes]") -> Done:
    out, err = process.communicate(timeout=SECONDS_MAX)
    return checked(process.returncode, out, err)
