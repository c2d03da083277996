"""Take a run through its whole life on this machine's own card, and compare estimate and measurement.

    python -m lab.card_run --gpu H200 [--steps 1500] [--image NAME]

The server must be up (`tera up`), and the image must have PyTorch. The run is traced, planned and launched. After a
checkpoint the guest is stopped by force and the server killed with SIGKILL, and both come back. Later the command is
killed with SIGKILL in the guest, which fails the run, and `tera run retry` continues it. The result must be that of
the same script on the host without interruption.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from shutil import copy
from typing import Any

from teraflock.app.installation.places import Places
from teraflock.drivers.lxd import daemon
from teraflock.drivers.lxd.rest import LxdClient

TRAINING = Path(__file__).with_name("card_train.py")
TERA = (sys.executable, "-m", "teraflock")
NAME = "card"
WAIT_SECONDS_MAX = 300.0
LOOK_AGAIN_SECONDS = 0.25
ENDED = ("done", "failed", "cancelled")
Shown = dict[str, Any]


def main() -> None:
    asked = _parser().parse_args()
    with tempfile.TemporaryDirectory() as folder:
        alone = reference(asked, Path(folder) / "alone")
        work = Path(folder) / "work"
        work.mkdir()
        copy(asked.script, work / "train.py")
        start(asked, work)
        lose_guest_and_server()
        kill_command()
        result = fetched(Path(folder) / "fetched")
    say("result", same=result == alone, uninterrupted=alone, interrupted=result)
    sys.exit(0 if result == alone else 1)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m lab.card_run")
    parser.add_argument("--gpu", default="", help="the card; without it, run without one")
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--image", default="base", help="an image with PyTorch")
    parser.add_argument("--script", type=Path, default=TRAINING)
    parser.add_argument("words", nargs="*", help="after `--`: more arguments of the script")
    return parser


def reference(asked: argparse.Namespace, folder: Path) -> str:
    """Return the result of the script on the host, without any interruption."""
    began = time.monotonic()
    command = [sys.executable, str(asked.script), str(asked.steps), *asked.words]
    environment = {**os.environ, "TERA_OUTPUTS": str(folder), "TERA_CHECKPOINTS": str(folder / "saved")}
    subprocess.run(command, check=True, env=environment, stdout=sys.stderr)
    say("on the host, uninterrupted", seconds=since(began))
    return (folder / "result.txt").read_text().strip()


def start(asked: argparse.Namespace, work: Path) -> None:
    place = ("--gpu", asked.gpu) if asked.gpu else ("--cpu-only",)
    words = ["run", "train.py", "--workdir", str(work), "--name", NAME, "--image", asked.image, *place]
    words += ["--steps", str(asked.steps)]
    script = ["--", str(asked.steps), *asked.words]
    began = time.monotonic()
    print(tera([*words, "--dry-run", *script], work), flush=True)
    say("traced and planned", seconds=since(began))
    began = time.monotonic()
    tera([*words, "--yes", "--detach", *script], work)
    wait("some progress", lambda run: bool(run["progress"]))
    say("from `tera run` to the first progress", seconds=since(began))


def lose_guest_and_server() -> None:
    run = wait("a checkpoint", lambda run: bool(run["checkpoints"]))
    stop_by_force(run["instance_id"])
    os.kill(int(Places().pid.read_text().split()[0]), signal.SIGKILL)
    say("stopped the guest by force and killed the server", at=run["progress"])
    began = time.monotonic()
    tera(["up"])
    wait("the run after that", lambda run: "continues after" in tera(["run", "logs", NAME]))
    say("the run continued", seconds=since(began))


def kill_command() -> None:
    run = shown()
    done = tera_done(["exec", run["instance_id"], "--", "pkill", "-9", "-f", "train.py"])
    if done.returncode:
        say("the command had ended before it could be killed", code=done.returncode)
        return
    run = wait("the end of the killed command", lambda run: run["state"] in ENDED)
    say("killed the command", state=run["state"], exit_code=run["exit_code"], at=run["progress"])
    if run["state"] == "failed":
        tera(["run", "retry", NAME])


def fetched(folder: Path) -> str:
    run = wait("the end", lambda run: run["state"] in ENDED)
    print(tera(["run", "show", NAME]), flush=True)
    print(json.dumps(run), flush=True)
    tera(["run", "cp", NAME, str(folder)])
    print(tera(["bill", "verify"]), flush=True)
    return (folder / "outputs" / "result.txt").read_text().strip()


def stop_by_force(instance: str) -> None:
    socket = daemon.find(os.environ) or Places().lxd / "unix.socket"
    host = LxdClient(socket)
    for project in [each["name"] for each in host.get("projects", recursion=1)]:
        engine = LxdClient(socket, project=project)
        for name in engine.names("instances"):
            if name.endswith(instance.replace("_", "-")):
                engine.put("instances", name, "state", body={"action": "stop", "timeout": 5, "force": True})
        engine.close()
    host.close()


def wait(what: str, is_so: Callable[[Shown], bool]) -> Shown:
    until = time.monotonic() + WAIT_SECONDS_MAX
    while time.monotonic() < until:
        run = shown()
        if is_so(run):
            return run
        if run["state"] in ENDED:
            raise SystemExit(f"error: the run ended before {what}: {run}\n{tera(['run', 'logs', NAME])}")
        time.sleep(LOOK_AGAIN_SECONDS)
    raise SystemExit(f"error: waited {WAIT_SECONDS_MAX:g} s for {what}: {shown()}")


def shown() -> Shown:
    found: Shown = json.loads(tera(["run", "show", NAME, "--json"]))
    return found


def tera(words: Sequence[str], folder: Path | None = None) -> str:
    done = tera_done(words, folder)
    if done.returncode:
        raise SystemExit(f"error: tera {' '.join(words)}: {done.stdout}{done.stderr}")
    return done.stdout


def tera_done(words: Sequence[str], folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*TERA, *words], cwd=folder, capture_output=True, text=True, check=False)


def since(began: float) -> float:
    return round(time.monotonic() - began, 2)


def say(what: str, **values: object) -> None:
    print(json.dumps({"what": what, **values}), flush=True)


if __name__ == "__main__":
    main()
