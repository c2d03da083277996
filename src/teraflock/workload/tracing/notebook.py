"""Notebooks: runs their code cells in order, in one namespace. Shell commands and magics are left out."""

import json
from pathlib import Path
from typing import Any

from teraflock.base.errors import BadInput


def run_notebook(path: Path) -> None:
    names: dict[str, Any] = {"__name__": "__main__", "__file__": str(path)}
    for number, text in cells(path):
        code = compile(text, str(path.parent / f"{path.name}, cell {number}"), "exec")
        exec(code, names)  # noqa: S102 -- the user's own script, which he asked to have run


def cells(path: Path) -> list[tuple[int, str]]:
    """Number and text of each code cell. Lines keep their numbers."""
    try:
        read = json.loads(path.read_text("utf-8"))
        found = [each for each in read["cells"] if each["cell_type"] == "code"]
        texts = ["".join(each["source"]) for each in found]
    except (ValueError, KeyError, TypeError):
        raise BadInput(
            f"`{path.name}` is not a notebook", hint="A notebook is a JSON file with `cells`"
        ) from None
    return [(number, _plain(text)) for number, text in enumerate(texts, 1)]


def _plain(text: str) -> str:
    if text.lstrip().startswith("%%"):
        first = text.lstrip().split(maxsplit=1)[0]
        if first not in ("%%time", "%%timeit", "%%capture"):
            return ""
    lines = []
    for line in text.split("\n"):
        left = line.lstrip()
        indent = line[: len(line) - len(left)]
        lines.append(f"{indent}pass" if left.startswith(("%", "!")) or left.endswith("?") else line)
    return "\n".join(lines)
