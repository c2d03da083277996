"""The Python script that a command runs, so that it can be traced: `python3 FILE.py` or `torchrun FILE.py`. Pure."""

import re
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Final, NamedTuple

PYTHON: Final = re.compile(r"python(3(\.\d+)?)?")
WITH_VALUES: Final = ("-W", "-X", "--check-hash-based-pycs")
"""Options of Python whose value is the next word."""
LAUNCHERS: Final = ("torch.distributed.run", "torch.distributed.launch")
WITHOUT_VALUES: Final = ("--standalone", "--run-path", "--virtual-local-rank", "--use-env")
"""Options of torchrun that have no value; `_` may stand for `-`. With `-m` and `--no-python` it runs no file."""
NO_FILE: Final = ("-m", "--module", "--no-python")


class Script(NamedTuple):
    path: str
    arguments: tuple[str, ...]


def script_of(command: Sequence[str]) -> Script | None:
    program, words = PurePosixPath(command[0]).name, list(command[1:])
    if PYTHON.fullmatch(program):
        return _after_python(words)
    return _after_torchrun(words) if program == "torchrun" else None


def _after_python(words: list[str]) -> Script | None:
    while words and words[0].startswith("-"):
        option = words.pop(0)
        if option == "-m" and words and words[0] in LAUNCHERS:
            return _after_torchrun(words[1:])
        if option == "-" or re.fullmatch(r"-[A-VYZa-z]*[cm].*", option):
            return None
        del words[: option in WITH_VALUES]
    return _script(words)


def _after_torchrun(words: list[str]) -> Script | None:
    while words and words[0].startswith("-"):
        option = words.pop(0).replace("_", "-")
        if option in NO_FILE:
            return None
        del words[: "=" not in option and option not in WITHOUT_VALUES]
    return _script(words)


def _script(words: list[str]) -> Script | None:
    return Script(words[0], tuple(words[1:])) if words and words[0].endswith(".py") else None
