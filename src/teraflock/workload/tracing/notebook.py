"""Notebooks: runs their code cells in order, in one namespace. Shell commands and magics are left out."""

import json
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from unittest import mock
from unittest.mock import MagicMock

from teraflock.base.errors import BadInput
from teraflock.workload.tracing.batch_change import changed_code


def run_notebook(path: Path, times: int = 1) -> None:
    """`times` multiplies the batches in the source."""
    names: dict[str, Any] = {
        "__name__": "__main__",
        "__file__": str(path),
        "get_ipython": MagicMock(),
        "display": print,
    }
    with mock.patch.dict(sys.modules, {} if find_spec("IPython") else _absent()):
        _run_cells(path, times, names)


def _absent() -> dict[str, Any]:
    """A notebook imports IPython without need for it: progress, pictures, clearing of output."""
    shell = MagicMock(version_info=(9, 0, 0), __version__="9.0.0", get_ipython=lambda: None)
    return {"IPython": shell, "IPython.display": shell.display, "IPython.core.display": shell.core.display}


def _run_cells(path: Path, times: int, names: dict[str, Any]) -> None:
    for number, text in cells(path):
        code = changed_code(text, str(path.parent / f"{path.name}, cell {number}"), times)
        exec(code, names)  # noqa: S102 -- the user's own script


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
