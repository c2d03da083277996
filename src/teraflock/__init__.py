"""Teraflock: a GPU cloud you own.

The folders follow the way of the data: workload → estimate → offers → plan → instance → meter → bill.
`ARCHITECTURE.md` says what each of them owns and which may import which.
"""

from __future__ import annotations  # guests may have Python 3.9

__version__ = "0.1.0"


def progress(step: int, of: int | None = None, loss: float | None = None) -> None:
    """Report the progress of a command that `tera run` runs. Elsewhere, it does nothing.

    The numbers may be those of NumPy, or tensors with one element.
    """
    import json
    import os

    path = os.environ.get("TERA_PROGRESS")
    if path:
        said = {"step": int(step), "of": None if of is None else int(of)}
        more = {"loss": None if loss is None else float(loss), "memory_bytes": _memory_bytes()}
        try:
            with open(path, "a") as file:  # noqa: PTH123
                file.write(json.dumps({**said, **more}) + "\n")
        except OSError:  # a full disk ends no training
            return


def _memory_bytes() -> int | None:
    """The most GPU memory that PyTorch held so far. None: it has no GPU, or is not used."""
    import sys

    torch = sys.modules.get("torch")
    try:
        return int(torch.cuda.max_memory_reserved()) if torch and torch.cuda.is_initialized() else None
    except Exception:  # another version of PyTorch must not end the command
        return None
