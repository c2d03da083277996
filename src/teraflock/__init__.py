"""Teraflock: a GPU cloud you own.

The folders follow the way of the data: workload → estimate → offers → plan → instance → meter → bill.
`ARCHITECTURE.md` says what each of them owns and which may import which.
"""

__version__ = "0.1.0"


def progress(step: int, of: int | None = None, loss: float | None = None) -> None:
    """Report the progress of a command that `tera run` runs. Elsewhere, it does nothing."""
    import json
    import os

    path = os.environ.get("TERA_PROGRESS")
    if path:
        with open(path, "a") as file:  # noqa: PTH123
            file.write(json.dumps({"step": step, "of": of, "loss": loss}) + "\n")
