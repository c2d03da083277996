"""Why a script could not be traced: one sentence with the line of the user's own code and the reason.

The line is the innermost one in a file that lies beside the script or below it, so that a fault in a module of the
user's is told there and not where it was called; what is installed there as a package is nobody's own.
"""

import sysconfig
import traceback
from pathlib import Path

from teraflock.base.errors import BadInput

REASONS = {
    "DataDependentOutputException": "it needs the value of a tensor, and a trace has shapes only",
    "GuardOnDataDependentSymNode": "it needs the value of a tensor, and a trace has shapes only",
    "DynamicOutputShapeException": "the shape of a result depends on the values of a tensor",
    "UnsupportedFakeTensorException": "it leaves PyTorch (numpy or a data pointer), where a trace cannot follow",
    "UnsupportedOperatorException": "it uses an operator that has no form without numbers",
    "OSError": "a file or a download is missing: build the model from a config, and the data from `torch.randn`",
    "FileNotFoundError": "a file is missing: a trace needs no data, so make some with `torch.randn`",
    "ModuleNotFoundError": "a package is missing here",
}
WORDS = {
    ".numpy() is not supported": REASONS["UnsupportedFakeTensorException"],
    "data pointer": REASONS["UnsupportedFakeTensorException"],
    "not Unknown": "a value that only a GPU would compute becomes a size or an index",
}
"""Parts of sentences by which PyTorch tells such a reason in an error of no kind of its own."""
TEXT_MAX = 200


def explained(error: BaseException, *, name: str, folder: Path, reason: str | None = None) -> BadInput:
    """With a `reason` given, even an empty one, only the line is told."""
    if isinstance(error, BadInput):
        return error
    where = _line(error, folder) or name
    if reason is not None:
        return BadInput(f"{where}: {reason}" if reason else where)
    if isinstance(error, SystemExit):
        return BadInput(f"{where}: the script ended itself before its second step: {_code(error)}")
    kind = type(error).__name__
    lines = (error.msg if isinstance(error, SyntaxError) else str(error)).strip().splitlines()
    first = lines[0][:TEXT_MAX] if lines else ""
    reason = REASONS.get(kind) or next((why for part, why in WORDS.items() if part in first), "")
    if isinstance(error, OSError) and not reason:
        reason = REASONS["OSError"]
    return BadInput(
        f"{where}: this cannot be traced: {reason or f'{kind}: {first}'}",
        hint=f"The error was: {first}" if reason and first else "",
    )


def _line(error: BaseException, folder: Path) -> str:
    if isinstance(error, SyntaxError) and error.filename:
        return f"{Path(error.filename).name}, line {error.lineno}"
    root = folder.resolve()
    installed = [Path(each).resolve() for each in set(sysconfig.get_paths().values())]
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        path = Path(frame.filename).resolve()
        if path.is_relative_to(root) and not any(
            path.is_relative_to(each) and each != root for each in installed
        ):
            return f"{path.name}, line {frame.lineno}"
    return ""


def _code(error: SystemExit) -> str:
    return f"exit code {error.code}" if isinstance(error.code, int) else str(error.code)
