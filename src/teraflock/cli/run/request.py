"""The words of `tera run`, from the command line and `tera.yaml`, as a request to the server."""

import os
import re
import sys
import tomllib
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

import click
import msgspec

from teraflock.base.errors import BadInput
from teraflock.base.names import check_name, check_variable
from teraflock.cli.parse import parse_pairs
from teraflock.cli.parse_money import parse_amount
from teraflock.cli.run.file import FILE, read_file
from teraflock.cli.run.script import Script, script_of
from teraflock.cli.shape_options import shape_from
from teraflock.run.sweep import combinations
from teraflock.wire.run import RunRequest
from teraflock.wire.shape import ShapeRequest

SETUP_BYTES_MAX: Final = 65_536
FILE_BYTES_MAX: Final = 1 << 20
"""Read of a file with requirements, of which a `pyproject.toml` is only a part."""
PYTHON: Final = "python3"
PARAMETER: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")


class RunWords(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that was said about a run, checked as far as possible without a server."""

    command: tuple[str, ...]
    script: str
    """The script, if it is one. Empty: a command."""
    workdir: str
    """Empty: nothing is uploaded."""
    shape: ShapeRequest
    environment: Mapping[str, str]
    secrets: Mapping[str, str]
    requirements: str
    sweep: Mapping[str, tuple[str, ...]]
    """The values of each parameter. Empty: one run."""
    options: Mapping[str, Any]
    """All other options, by name."""

    @property
    def python(self) -> Script | None:
        """The Python script that runs, if it is uploaded."""
        found = script_of(self.command) if self.workdir else None
        return found if found and _is_inside(Path(self.workdir), found.path) else None

    @property
    def chooses_gpu(self) -> bool:
        """Whether the plan may choose the GPU."""
        said = self.shape
        named = said.gpu or said.gpus is not None or said.name or self.options.get("type")
        return not named and not self.options.get("cpu_only")


def given_words(script: str | None, after: tuple[str, ...], options: Mapping[str, Any]) -> RunWords:
    """Combine the command line with `tera.yaml`. The command line wins."""
    said = {name: value for name, value in options.items() if value not in (None, (), "", False)}
    filed = read_file(Path(FILE)) if Path(FILE).is_file() else {}
    words = {**filed, **said}
    script = script or (None if after else str(words.pop("script", "") or "") or None)
    workdir = str(words.pop("workdir", "") or ("." if script else ""))
    script = _script_in(Path(workdir), script) if script else None
    command = _command(script, after, words)
    _check_work(words)
    environment = {**_pairs(filed.get("environment")), **_pairs(said.get("environment"))}
    names = tuple(dict.fromkeys((*_list(filed.get("secrets")), *_list(said.get("secrets")))))
    for used in ("environment", "secrets", "script", "command", "arguments"):
        words.pop(used, None)
    return RunWords(
        command=command,
        script=script or "",
        workdir=workdir,
        shape=_offered(words, _shape(words)),
        environment=environment,
        secrets={name: secret_value(name) for name in names},
        requirements=_requirements(words.pop("requirements", "")),
        sweep=sweep_from(words.pop("sweep", ())),
        options=words,
    )


def request_from(words: RunWords, digest: str | None, now: datetime) -> RunRequest:
    said = words.options
    same = (
        "image",
        "site",
        "provider",
        "type",
        "region",
        "burst",
        "mode",
        "setup",
        "outputs",
        "checkpoints",
        "keep",
        "nodes",
        "priority",
        "offer",
    )
    given = {name: said[name] for name in same if name in said}
    if "name" in said:
        given["name"] = check_name(str(said["name"]), "a run")
    if "bid" in said:
        given["bid_micros_per_hour"] = parse_amount(str(said["bid"]), at_least=1)
    if "max_price" in said:
        given["max_price_micros_per_hour"] = parse_amount(str(said["max_price"]))
    if "attempts" in said:
        given["attempts_max"] = said["attempts"]
    if "budget" in said:
        given["budget_micros"] = parse_amount(str(said["budget"]), at_least=1)
    if "deadline" in said:
        given["deadline"] = now + timedelta(hours=_deadline_hours(str(said["deadline"]), now))
    request = RunRequest(
        command=words.command,
        shape=words.shape,
        requirements=words.requirements,
        environment=words.environment,
        secrets=words.secrets,
        data=tuple(map(str, _list(said.get("data")))),
        workdir=digest,
        **given,
    )
    try:  # the server checks it again; this has the better place for a mistake in `tera.yaml`
        return msgspec.convert(msgspec.to_builtins(request), RunRequest)
    except msgspec.ValidationError as error:
        raise BadInput(
            f"A value of the run is not valid: {error}", hint=f"Check the options and `{FILE}`"
        ) from None


def _offered(words: dict[str, Any], shape: ShapeRequest) -> ShapeRequest:
    """The shape of an offer. Its other words are added to `words`."""
    if not words.get("offer"):
        return shape
    from teraflock.cli.instance import offer_file
    from teraflock.wire import renting

    if shape != ShapeRequest() or any(words.get(name) for name in ("type", "provider", "site")):
        raise BadInput(
            "The offer already names the machine",
            hint="Leave out the GPUs, `--type`, `--provider` and `--site`",
        )
    shape, found = renting.options_of(offer_file.find(str(words["offer"])))
    words.update(found)
    return shape


def _deadline_hours(text: str, now: datetime) -> float:
    from teraflock.plan.deadline import deadline_hours

    return deadline_hours(text, now)


def _command(script: str | None, after: tuple[str, ...], words: Mapping[str, Any]) -> tuple[str, ...]:
    if script:
        arguments = after or tuple(map(str, _list(words.get("arguments"))))
        path = (
            f"./{script}" if script.startswith("-") else script
        )  # else the interpreter takes it for an option
        if script.endswith(".py"):
            return (PYTHON, path, *arguments)
        return ("bash", path, *arguments) if script.endswith(".sh") else (f"./{script}", *arguments)
    command = after or tuple(map(str, _list(words.get("command"))))
    if not command:
        raise BadInput(
            "Nothing to run",
            hint="Name a script, as in `tera run train.py`, or a command: `tera run -- ./train.sh`",
        )
    return command


def _script_in(workdir: Path, script: str) -> str:
    """The path of the script within the folder that is uploaded. It may be given relative to either folder."""
    for path in (workdir / script, Path(script)):
        if _is_file(path):
            if not _is_inside(workdir, path.resolve()):
                raise BadInput(
                    f"`{script}` is not inside the folder that is uploaded, `{workdir}`",
                    hint="Name a folder that contains it with `--workdir`",
                )
            return path.resolve().relative_to(workdir.resolve()).as_posix()
    raise BadInput(f"File not found: `{script}`", hint="Put a command that is not a file after `--`")


def _is_inside(workdir: Path, path: str | Path) -> bool:
    """Whether it is a file in the folder that is uploaded."""
    try:
        there = (workdir / path).resolve()
        return there.is_file() and there.is_relative_to(workdir.resolve())
    except (OSError, ValueError):  # a name is too long, or contains a NUL character
        return False


def forgotten_file(words: RunWords) -> str:
    """A file of this folder that the command names although nothing is uploaded, or nothing."""
    named = () if words.workdir else words.command
    return next((each for each in named if not Path(each).is_absolute() and _is_file(Path(each))), "")


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # its name is too long, or contains a NUL character
        return False


def _shape(words: dict[str, Any]) -> ShapeRequest:
    given = {name: words.pop(name, None) for name in ("gpu", "gpus", "shape", "vcpus", "ram", "disk")}
    if words.get("cpu_only") and (given["gpu"] or given["gpus"]):
        raise BadInput("`--cpu-only` and `--gpu` contradict each other", hint="Leave one of them out")
    for name in ("ram", "disk"):
        given[name] = None if given[name] is None else str(given[name])
    return shape_from({**given, "gpu": given["gpu"] or "", "shape": given["shape"] or ""})


def _requirements(name: str) -> str:
    if not name:
        return ""
    try:
        with Path(name).open("rb") as file:  # it may have no end
            text = file.read(FILE_BYTES_MAX + 1).decode()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise BadInput(f"`{name}` cannot be read: {reason}", hint="Name a requirements file") from None
    is_whole = len(text) <= FILE_BYTES_MAX
    text = _dependencies(text, name) if is_whole and Path(name).suffix == ".toml" else text
    if len(text.encode()) > SETUP_BYTES_MAX:
        raise BadInput(f"`{name}` has more than 64 KB", hint="Use `--setup` and an index of your own")
    return text


def _dependencies(text: str, name: str) -> str:
    """The dependencies of a `pyproject.toml`, as a requirements file."""
    try:
        found = tomllib.loads(text)["project"]["dependencies"]
        return "".join(f"{str(each).strip()}\n" for each in found)
    except (tomllib.TOMLDecodeError, LookupError, TypeError):
        raise BadInput(
            f"`{name}` has no list `dependencies` in `[project]`", hint="Or name a requirements file"
        ) from None


def secret_value(name: str) -> str:
    """The value of a secret: from the environment, typed without echo, or one line of stdin. Never an argument."""
    if "=" in name:
        raise BadInput(
            "`--secret` takes a name, not a value: arguments can be seen by other users of this machine",
            hint=f"Set the variable `{name.partition('=')[0]}` and pass only its name",
        )
    check_variable(name)
    if name in os.environ:
        return os.environ[name]
    if sys.stdin.isatty():
        value: str = click.prompt(name, hide_input=True, err=True)
        return value
    line = sys.stdin.readline().rstrip("\n")
    if not line:
        raise BadInput(
            f"The secret `{name}` has no value", hint=f"Set the variable `{name}`, or write it to stdin"
        )
    return line


def sweep_from(value: Any) -> dict[str, tuple[str, ...]]:
    """`lr=1e-3,1e-4` on the command line, or a mapping in `tera.yaml`."""
    if isinstance(value, Mapping):
        grid = {str(name): tuple(map(str, _list(each))) for name, each in value.items()}
    else:
        found = parse_pairs(_list(value), "--sweep")
        grid = {name: tuple(filter(None, each.split(","))) for name, each in found.items()}
    for name, values in grid.items():
        if not values or not PARAMETER.fullmatch(name):
            raise BadInput(
                f"`{name[:80]}` cannot be swept: it needs a name of letters, digits, `_` and `-`, and values",
                hint="For example `--sweep lr=1e-3,1e-4`",
            )
    if grid:
        combinations(grid)  # the server refuses the same, but only after the files were uploaded
    return grid


def _pairs(value: Any) -> dict[str, str]:
    if isinstance(value, Mapping):
        found = {str(name): str(each) for name, each in value.items()}
    else:
        found = parse_pairs(_list(value), "--env")
    for name in found:
        check_variable(name)
    return found


def _list(value: Any) -> tuple[Any, ...]:
    return () if value is None else tuple(value) if isinstance(value, list | tuple) else (value,)


def _check_work(words: Mapping[str, Any]) -> None:
    """Neither of them says alone how much work there is."""
    for one, other in (("epochs", "samples"), ("samples", "epochs")):
        if one in words and other not in words:
            raise BadInput(f"`--{one}` needs `--{other}`", hint="For example `--epochs 3 --samples 50000`")
