"""How the command line speaks: data on stdout, words on stderr, colour only where a terminal asks for it."""

import os
import sys
from collections.abc import Iterable
from typing import Final

import click

NO_TERMINAL_COLUMNS: Final = 200  # where no terminal limits the width, a wide table is cut less


def complain(sentence: str, hint: str = "") -> None:
    click.echo(f"error: {sentence}", err=True)
    if hint:
        click.echo(f"\nhint: {hint}", err=True)


def remark(sentence: str) -> None:
    """Words beside the data, for a person."""
    sys.stdout.flush()  # so that they come after the table, not before it
    click.echo(sentence, err=True)


def called() -> str:
    """The command as it can be typed here: `tera` where the shell finds it, else its path."""
    import shutil

    program = sys.argv[0]
    if shutil.which("tera") == program or not os.access(program, os.X_OK) or not program.endswith("tera"):
        return "tera"
    relative = os.path.relpath(program)
    return relative if len(relative) < len(program) else program


def columns() -> int:
    """How wide the table may be. `COLUMNS` is honoured, as elsewhere."""
    if "COLUMNS" in os.environ or sys.stdout.isatty():
        from shutil import get_terminal_size  # here: it costs a cold start 3 ms

        return get_terminal_size().columns
    return NO_TERMINAL_COLUMNS


def gpus_text(count: int | None, name: str, share: float = 1.0) -> str:
    """`2× V100`, `1× L4 1/8` for a slice, and the bare name where the number is not told."""
    named = name if share >= 1 else f"{name} 1/{round(1 / share)}"
    return f"{count}× {named}" if count else named


def emphasised(text: str) -> str:
    """Bold on a terminal; plain where it is piped or `NO_COLOR` is set. Never carries meaning."""
    return click.style(text, bold=True) if sys.stdout.isatty() and "NO_COLOR" not in os.environ else text


def write_json(value: object) -> None:
    import msgspec  # only here: a table needs none

    sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n")


def write_csv(header: Iterable[str], rows: Iterable[Iterable[object]]) -> None:
    import csv
    from io import TextIOWrapper

    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")  # data is whole, whatever the terminal can show
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
