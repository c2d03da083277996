"""Output of the commands: data on stdout, messages on stderr, bold text only on a terminal."""

import os
import re
import sys
from collections.abc import Iterable
from typing import Final, TextIO

import click

ESCAPES: Final = re.compile(
    r"(?P<kept>\x1b\[[0-9;:]*[mK])"
    r"|\x1b\[[0-?]*[ -/]*[@-~]?"
    r"|\x1b[\]PX^_][^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)?"
    r"|[\x00-\x07\x0b\x0c\x0e-\x1f\x7f-\x9f]"
)
NO_TERMINAL_COLUMNS: Final = 200  # the width of tables that are not written to a terminal


def complain(sentence: str, hint: str = "") -> None:
    write_output(f"error: {sentence}\n", err=True)  # it may quote a file or a server
    if hint:
        write_output(f"\nhint: {hint}\n", err=True)


def remark(sentence: str) -> None:
    """Print a message on stderr."""
    sys.stdout.flush()  # so that it appears after the table
    write_output(f"{sentence}\n", err=True)  # it may quote a provider or a joined host


def called() -> str:
    """How the user can call this program: `tera` if it is in PATH, otherwise its path."""
    import shutil

    program = sys.argv[0]
    if shutil.which("tera") == program or not os.access(program, os.X_OK) or not program.endswith("tera"):
        return "tera"
    relative = os.path.relpath(program)
    return relative if len(relative) < len(program) else program


def columns() -> int:
    """The maximum width of a table. The environment variable `COLUMNS` overrides the terminal's width."""
    if "COLUMNS" in os.environ or sys.stdout.isatty():
        from shutil import get_terminal_size  # imported here: it adds 3 ms to a cold start

        return get_terminal_size().columns
    return NO_TERMINAL_COLUMNS


def gpus_text(count: int | None, name: str, share: float = 1.0) -> str:
    """`2× V100`, `1× L4 1/8` for a slice, or the name alone if the number is unknown."""
    named = name if share >= 1 else f"{name} {_fraction(share)}"
    return f"{count}× {named}" if count else named


def _fraction(share: float) -> str:
    """The nearest fraction with a small denominator: MIG divides a card into sevenths."""
    for below in range(2, 10):
        above = round(share * below)
        if above and abs(above / below - share) < 0.001:
            return f"{above}/{below}"
    return f"1/{round(1 / share)}"


def is_screen(stream: TextIO) -> bool:
    """Whether it is a terminal that can move its cursor. `TERM=dumb` prints control sequences as they are."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def harmless(text: str) -> str:
    """The output of a program in a guest without what would change a terminal: only colours, tabs, returns and erased
    lines are kept. Other escapes set titles and the clipboard, hide text, or make the terminal type an answer."""
    return ESCAPES.sub(lambda found: found["kept"] or "", text)


def write_output(text: str, *, err: bool = False) -> None:
    """Print text from elsewhere, such as what a program in a guest has written. In a file or a pipe it is as it was."""
    is_shown = (sys.stderr if err else sys.stdout).isatty()
    click.echo(harmless(text) if is_shown else text, nl=False, err=err)


def emphasised(text: str) -> str:
    """Bold on a terminal, plain in a pipe or with `NO_COLOR`. Bold never carries meaning."""
    return click.style(text, bold=True) if is_screen(sys.stdout) and "NO_COLOR" not in os.environ else text


def write_json(value: object) -> None:
    import msgspec  # imported here: tables do not need it

    sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n")


def tell(value: object, sentence: str, as_json: bool) -> None:
    """Print the value as JSON, or the sentence as a message."""
    write_json(value) if as_json else remark(sentence)


def write_csv(header: Iterable[str], rows: Iterable[Iterable[object]]) -> None:
    import csv
    from io import TextIOWrapper

    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(
            encoding="utf-8"
        )  # data is complete even if the terminal cannot show every character
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
