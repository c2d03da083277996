"""Traces a script in a copy of this process, which has PyTorch loaded already: a small one takes a second."""

import json
import os
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

SECONDS_MAX = 240


def forked(work: Callable[[], Any], folder: Path) -> Any:
    """What `work` returns, as JSON, in a child with its output in `folder`."""
    answer = folder / "answer.json"
    child = os.fork()
    if child == 0:
        _child(work, folder, answer)
    end = time.monotonic() + SECONDS_MAX
    while os.waitpid(child, os.WNOHANG)[0] == 0:
        if time.monotonic() > end:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            raise TimeoutError(f"no answer after {SECONDS_MAX} s")
        time.sleep(0.02)
    assert answer.exists(), (folder / "output").read_text(errors="replace")[-3000:]
    return json.loads(answer.read_text())


def _child(work: Callable[[], Any], folder: Path, answer: Path) -> None:
    try:
        warnings.simplefilter("ignore")  # the tests turn them into errors; scripts may warn
        os.chdir(folder)
        output = os.open(folder / "output", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(output, 1)
        os.dup2(output, 2)
        sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
        made = json.dumps(work())
        answer.write_text(made)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


def traced(text: str, folder: Path) -> Any:
    """What `tera trace --json` prints for this script."""
    script = folder / "train.py"
    script.write_text(text)

    def work() -> Any:
        from teraflock.cli.trace import shape
        from teraflock.workload.tracing.script import trace_script

        return shape(trace_script(script))

    return forked(work, folder)
