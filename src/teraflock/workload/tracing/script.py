"""Runs a user's script until one step is known, and returns the trace of that step.

GPU tensors have shapes and no values (`side.py`); everything else runs unchanged. After every optimizer step the run
is searched for a pattern (`steps.py`). When one is found, the script is stopped. What happened before the step is kept
as the setup, because it determines what is in memory. If a script cannot be traced, the error has the line and the
reason.
"""

import contextlib
import importlib
import inspect
import io
import logging
import os
import sys
import types
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final
from unittest import mock

import msgspec

from teraflock.base.errors import BadInput
from teraflock.workload.any_batch import DifferentWork, merged
from teraflock.workload.trace import Trace
from teraflock.workload.tracing.batch_change import BatchChange, changed_code, ways, with_larger_batch
from teraflock.workload.tracing.failure import explained
from teraflock.workload.tracing.notebook import run_notebook
from teraflock.workload.tracing.session import NeedsGpu, Session
from teraflock.workload.tracing.time_limit import OutOfTime, time_limit

BATCH_HINT = 6
OFFLINE = ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE")
"""A trace needs no weights and no data. These settings make libraries that would download some fail at once."""
SECONDS_MAX: Final = 300.0
MAIN: Final = "__main__.py"
LAUNCHED: Final = {
    "RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "LOCAL_WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1",
    "MASTER_PORT": "29500",
}  # fmt: skip
"""What `torchrun` sets for a single process. Used only for a script that reads it and would fail without."""


def trace_script(
    script: Path,
    *,
    module: str = "",
    arguments: list[str] | None = None,
    seconds: float = SECONDS_MAX,
    any_batch: bool = False,
) -> Trace:
    """The trace of a Python file or notebook that trains or infers at its top level or under `__main__`.

    With `any_batch`, the script runs again with other batches, and the trace applies to any batch. With `module`,
    `script` is the current folder, and this module of it runs as with `python -m`.
    """
    file = _file_of(module, script) if module else script
    if not file.is_file():
        raise BadInput(f"File not found: `{file}`")
    source = _Source(file, script if module else file.resolve().parent, module)

    def traced(change: BatchChange) -> Trace:
        return _trace_script(source, arguments or [], seconds, change)

    found = traced(BatchChange())
    return _for_any_batch(found, arguments or [], traced) if any_batch else found


class _Source(msgspec.Struct, frozen=True):
    file: Path
    folder: Path
    """Python finds modules there."""
    module: str = ""

    @property
    def package(self) -> str:
        is_package = self.file.name == MAIN and self.module
        return self.module if is_package else self.module.rpartition(".")[0]


def _file_of(module: str, folder: Path) -> Path:
    place = folder.joinpath(*module.split("."))
    for file in (place / MAIN, place.with_suffix(".py")):
        if all(each.isidentifier() for each in module.split(".")) and file.is_file():
            return file
    needs = f": it needs `{MAIN}`" if place.is_dir() else ""
    raise BadInput(f"There is no module `{module}` in this folder{needs}")


def _for_any_batch(found: Trace, arguments: list[str], traced: Callable[[BatchChange], Trace]) -> Trace:
    try:
        for twice, three_times in zip(ways(arguments, 2), ways(arguments, 3), strict=True):
            second = traced(twice)
            if second.samples != found.samples:
                return merged([found, second, traced(three_times)])
    except BadInput as error:
        return _noted(found, f"The trace is for this batch only. With a larger one: {error.sentence}")
    except DifferentWork:
        return _noted(
            found, "The trace is for this batch only: with a larger one, the script does other work"
        )
    return _noted(found, SAME_BATCH)


SAME_BATCH: Final = (
    "The trace is for this batch only: no data loader, argument or name such as `batch_size` sets it"
)


def _noted(trace: Trace, note: str) -> Trace:
    assert trace.seen is not None
    seen = msgspec.structs.replace(trace.seen, notes=[*trace.seen.notes, note])
    return msgspec.structs.replace(trace, seen=seen)


def _trace_script(source: _Source, arguments: list[str], seconds: float, change: BatchChange) -> Trace:
    whole = source.file.resolve()
    name = source.module.rpartition(".")[2] or whole.stem

    def run() -> None:
        words = with_larger_batch(arguments, change.argument)
        with mock.patch.object(sys, "argv", [str(source.file), *words]):
            if whole.suffix == ".ipynb":
                run_notebook(whole, change.source)
            else:
                _run_file(whole, change.source, source.package)

    with _set_up(source.folder):
        return _recorded(name, whole, run, folder=source.folder, seconds=seconds, times=change.loader)


def _run_file(path: Path, times: int, package: str) -> None:
    """Run it as `python FILE` or `python -m MODULE` does, with larger batches in its source."""
    with io.open_code(str(path)) as file:
        code = changed_code(file.read(), str(path), times)
    module = types.ModuleType("__main__")
    module.__file__, module.__package__ = str(path), package or None
    with mock.patch.dict(sys.modules, {"__main__": module}):
        exec(code, vars(module))  # noqa: S102 -- the user's own script


def trace_entry(entry: str, *, folder: Path, seconds: float = SECONDS_MAX) -> Trace:
    """The trace of `module:function`. A parameter `batch` becomes a symbol, so that the trace applies to any batch."""
    module_name, _, function_name = entry.partition(":")
    if not module_name or not function_name:
        raise BadInput(f"`{entry}` is not an entry", hint="Write it as `module:function`")
    with _set_up(folder):
        function = _function(module_name, function_name, folder)
        source = Path(inspect.getsourcefile(function) or folder)
        if _wants_batch(function):
            session = Session(function_name, source.parent, symbolic=True)
            with _eager(source), time_limit(seconds):
                return session.record(lambda: function(batch=session.symbol("batch", BATCH_HINT)))
        return _recorded(function_name, source, function, folder=source.parent, seconds=seconds)


def _recorded(
    name: str, source: Path, run: Callable[[], Any], *, folder: Path, seconds: float, times: int = 1
) -> Trace:
    """Run again if the first run shows that the script needs a launcher or a GPU."""
    environment: dict[str, str] = {}
    assume = False
    for _ in range(3):
        session = Session(name, folder, assume=assume, times=times)
        try:
            with mock.patch.dict(os.environ, environment), _eager(source), time_limit(seconds):
                return session.record(run)
        except NeedsGpu:
            assume = True
        except KeyError as error:
            if environment or not error.args or error.args[0] not in LAUNCHED:
                raise explained(error, name=name, folder=folder) from None
            environment = dict(LAUNCHED)
        except OutOfTime as error:
            raise session.out_of_time(error, seconds) from None
    raise BadInput(f"`{source.name}` could not be traced")


def _function(module_name: str, function_name: str, folder: Path) -> Callable[..., Any]:
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name not in (module_name, module_name.partition(".")[0]):
            raise explained(error, name=module_name, folder=folder) from None
        raise BadInput(f"There is no module `{module_name}` in this folder") from None
    except (Exception, SystemExit) as error:
        raise explained(error, name=module_name, folder=folder) from None
    function = getattr(module, function_name, None)
    if not inspect.isfunction(function):
        raise BadInput(f"`{module_name}` has no function `{function_name}`")
    return function


def _wants_batch(function: Callable[..., Any]) -> bool:
    wanted = inspect.signature(function).parameters
    needed = [
        name
        for name, each in wanted.items()
        if each.default is each.empty and each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
    ]
    others = [f"`{name}`" for name in needed if name != "batch"]
    if others:
        raise BadInput(
            f"`{function.__name__}` needs {', '.join(others)}, but a trace passes only `batch`",
            hint="Add default values, or write a function around it",
        )
    return "batch" in wanted


def _eager(source: Path) -> Any:
    """Only for scripts that mention transformers: importing it takes seconds."""
    text = source.read_text("utf-8", "ignore") if source.is_file() else ""
    if "transformers" in text and find_spec("transformers"):
        from teraflock.workload.tracing.eager import transformers_eager

        return transformers_eager()
    return contextlib.nullcontext()


@contextlib.contextmanager
def _set_up(folder: Path) -> Iterator[None]:
    """Makes modules next to the script importable, prevents downloads, and silences PyTorch's own error logs."""
    offline = {name: "1" for name in OFFLINE if name not in os.environ}
    logger = logging.getLogger("torch._subclasses.fake_tensor")
    with (
        mock.patch.object(sys, "path", [str(folder), *sys.path]),
        mock.patch.dict(os.environ, {**offline, "MPLBACKEND": "Agg"}),
        mock.patch.object(logger, "disabled", True),
    ):
        yield
