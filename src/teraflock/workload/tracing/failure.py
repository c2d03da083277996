"""Why a script could not be traced: one sentence with the line of the user's code and the reason.

The line is the innermost one in a file in the script's folder or below, so that an error in a module of the user is
reported there and not at its call. Installed packages in that folder do not count.
"""

import sysconfig
import traceback
from pathlib import Path

from teraflock.base.errors import BadInput

REASONS = {
    "DataDependentOutputException": "it needs the value of a tensor, but a trace has only shapes",
    "GuardOnDataDependentSymNode": "it needs the value of a tensor, but a trace has only shapes",
    "DynamicOutputShapeException": "the shape of a result depends on the values of a tensor",
    "UnsupportedFakeTensorException": "it leaves PyTorch (numpy or a data pointer), where it cannot be traced",
    "UnsupportedOperatorException": "it uses an operator that cannot run without values",
    "OSError": "a file or a download is missing: create the model from a config and the data with `torch.randn`",
    "FileNotFoundError": "a file is missing: a trace needs no real data, so create some with `torch.randn`",
    "ModuleNotFoundError": "a package is not installed",
}
WORDS = {
    ".numpy() is not supported": REASONS["UnsupportedFakeTensorException"],
    "data pointer": REASONS["UnsupportedFakeTensorException"],
    **dict.fromkeys(
        ("not Unknown", "type Unknown", "got Unknown", "got (Unknown"),
        "a value that only a GPU would compute is used as a size or an index",
    ),
    "attempted relative import": "it belongs to a package: run it as a module, `tera trace -m package.module`",
}
"""Parts of PyTorch's messages that identify such a reason in a generic error."""
TEXT_MAX = 200


def explained(error: BaseException, *, name: str, folder: Path, reason: str | None = None) -> BadInput:
    """With a `reason`, even an empty one, only the line is added."""
    if isinstance(error, BadInput):
        return error
    where = _line(error, folder) or name
    if reason is not None:
        return BadInput(f"{where}: {reason}" if reason else where)
    if isinstance(error, SystemExit):
        return BadInput(f"{where}: the script exited before its second step: {_code(error)}")
    kind = type(error).__name__
    lines = (error.msg if isinstance(error, SyntaxError) else str(error)).strip().splitlines()
    first = lines[0][:TEXT_MAX] if lines else ""
    reason = REASONS.get(kind) or next((why for part, why in WORDS.items() if part in first), "")
    if isinstance(error, OSError) and not reason:
        reason = REASONS["OSError"]
    return BadInput(
        f"{where}: cannot be traced: {reason or f'{kind}: {first}'}",
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
