"""Measures steps of models under `torch.compile`: `python -m lab.measure_compiled JOBS OUT`.

Compiling takes up to a minute for a model. So the jobs run twice: first several at once, which fills Inductor's cache,
then one at a time, which is measured as in `lab/measure.py`. Needs a C compiler beside what that needs.
"""

import json
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

AT_ONCE = 8


def main() -> None:
    jobs, out, seconds = Path(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3])
    end = time.monotonic() + seconds
    lines = [json.dumps({**json.loads(line), "compile": 1}) for line in jobs.read_text().splitlines()]
    with tempfile.TemporaryDirectory() as folder:

        def compiled(number: int) -> None:
            one = Path(folder, f"{number}.jobs")
            one.write_text(lines[number] + "\n")
            _measure(one, Path(folder, f"{number}.jsonl"), 60.0)

        with ThreadPoolExecutor(AT_ONCE) as threads:
            list(threads.map(compiled, range(len(lines))))
        every = Path(folder, "jobs")
        every.write_text("\n".join(lines) + "\n")
        _measure(every, out, end - time.monotonic())


def _measure(jobs: Path, out: Path, seconds: float) -> None:
    command = [sys.executable, "-m", "lab.measure", str(jobs), str(out), "--seconds", str(seconds)]
    subprocess.run(command, check=False)


if __name__ == "__main__":
    main()
