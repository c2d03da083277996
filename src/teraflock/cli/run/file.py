"""`tera.yaml`: the words of `tera run` in a file, and `tera run init`, which writes one."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import click

from teraflock.base.errors import BadInput, Conflict, unknown_name
from teraflock.cli.options import LargeNumber
from teraflock.cli.output import remark

FILE: Final = "tera.yaml"
NAMES: Final = {
    "env": "environment", "secrets": "secrets", "cpu-only": "cpu_only", "script": "script", "command": "command",
    "arguments": "arguments", "data": "data", "sweep": "sweep", **{name: name for name in (
        "name", "gpu", "gpus", "shape", "vcpus", "ram", "disk", "image", "site", "provider", "type", "region", "burst",
        "mode", "workdir", "setup", "requirements", "outputs", "checkpoints", "keep", "attempts", "deadline", "budget",
        "hours", "steps", "trace", "nodes", "priority", "bid", "offer", "epochs", "samples",
    )},
}  # fmt: skip
"""Every word of the file, and the option that it means."""
LISTS: Final = frozenset({"env", "secrets", "command", "arguments", "data", "sweep"})
TEXTS: Final = frozenset(
    {"script", "workdir", "requirements", "setup", "outputs", "checkpoints", "trace", "gpu", "image"}
)
NUMBERS: Final[Mapping[str, click.ParamType[Any]]] = {
    "hours": click.FloatRange(0, 1e6), "steps": LargeNumber(), "epochs": LargeNumber(), "samples": LargeNumber(),
}  # fmt: skip
INIT_HELP: Final = """Write a `tera.yaml` for this folder. `tera run` without arguments then runs it.

\b
Examples:
  tera run init
  tera run init train.py
"""


def read_file(path: Path) -> dict[str, Any]:
    """Read the options of a file. Unknown words are an error."""
    try:
        import yaml
    except ModuleNotFoundError:
        raise BadInput(
            f"Reading `{path}` needs PyYAML", hint="pip install pyyaml, or remove the file and use options"
        ) from None
    try:
        content = yaml.safe_load(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        where = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise BadInput(f"`{path}` cannot be read: {where}", hint="It must be YAML") from None
    if content is None:
        return {}
    if not isinstance(content, Mapping):
        raise BadInput(f"`{path}` is not a list of words and values", hint="Write it as `gpu: A100`")
    found: dict[str, Any] = {}
    for word, value in content.items():
        if word not in NAMES:
            raise unknown_name("word", str(word), NAMES, see=f"In `{path}`. `tera run init` shows them")
        if value is not None:
            found[NAMES[word]] = _checked(word, value, path)
    return found


def _checked(word: str, value: Any, path: Path) -> Any:
    """A value of the kind that the word needs. What it means is checked later, like an option."""
    if word in ("env", "sweep") and isinstance(value, Mapping):
        return {name: _flat(word, each, path) for name, each in value.items()}
    if word in LISTS:
        given = value if isinstance(value, list) else [value]
        if any(isinstance(each, list | Mapping) for each in given):
            raise BadInput(
                f"`{word}` in `{path}` must be a list of texts", hint=f"Write it as `{word}: [a, b]`"
            )
        return [str(each) for each in given]
    if isinstance(value, list | Mapping):
        raise BadInput(f"`{word}` in `{path}` must be a single value", hint=f"Write it as `{word}: value`")
    if word in NUMBERS:
        return NUMBERS[word].convert(str(value), click.Option([f"--{word}"]), None)
    return str(value) if word in TEXTS else value


def _flat(word: str, value: Any, path: Path) -> Any:
    """A value of `env`, or the values of a parameter of `sweep`. Deeper ones can be far larger as text."""
    several = value if word == "sweep" and isinstance(value, list) else [value]
    if any(isinstance(each, list | Mapping) for each in several):
        raise BadInput(
            f"A value in `{word}` of `{path}` is not a text", hint=f"Write it as `{word}: {{NAME: text}}`"
        )
    return value


@click.command(help=INIT_HELP)
@click.argument("script", required=False)
@click.option("--force", is_flag=True, help="Replace an existing file.")
def init(script: str | None, force: bool) -> None:
    path = Path(FILE)
    if path.exists() and not force:
        raise Conflict(f"`{FILE}` already exists", hint="Edit it, or replace it with `--force`")
    scripts = [script] if script else sorted(each.name for each in Path().glob("*.py"))
    chosen = next(
        (each for each in ("train.py", "main.py") if each in scripts), next(iter(scripts), "train.py")
    )
    has_requirements = Path("requirements.txt").is_file()
    path.write_text(_text(chosen, has_requirements), "utf-8")
    remark(f"Wrote `{FILE}`. Next: `tera run --dry-run`")


def _text(script: str, has_requirements: bool) -> str:
    mark = "" if has_requirements else "# "
    return f"""\
# The words of `tera run`. Options on the command line win. All words: tera run --help
script: {_quoted(script)}
# arguments: [--lr, "1e-3"]
# gpu: A100            # or: cpu-only: true
# gpus: 1
{mark}requirements: requirements.txt
# setup: apt-get install -y git
# env: {{BATCH: 64}}
# data: [imagenet]     # from `tera data push`; $TERA_DATA/imagenet
# secrets: [WANDB_API_KEY]
# outputs: results     # kept at the end; $TERA_OUTPUTS is the same folder
# checkpoints: saved   # copied while it runs; $TERA_CHECKPOINTS
# deadline: friday
# budget: 40
"""


def _quoted(text: str) -> str:
    import json

    return text if text.replace(".", "").replace("_", "").replace("-", "").isalnum() else json.dumps(text)
