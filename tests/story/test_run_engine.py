"""`tera run` with real containers: interrupted at random moments, it ends with the result of an uninterrupted run."""

import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from shutil import copy
from typing import Any

import pytest
from tests.engine.sandbox import Sandbox
from tests.story.real_cloud import RealCloud, engine_sandbox

pytestmark = pytest.mark.long(
    "a server and an engine of its own; tests/faults has every step on simulated hosts"
)

EXAMPLE = Path(__file__).parents[2] / "examples" / "train_plain.py"
STEPS = "600"
SMALL = ("--vcpus", "1", "--ram", "512MB", "--disk", "2", "--yes")


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with engine_sandbox("run") as sandbox:
        yield sandbox


@pytest.fixture(scope="module")
def cloud(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealCloud]:
    cloud = RealCloud(tmp_path_factory.mktemp("real") / "home", sandbox)
    try:
        cloud.ok("up")
        yield cloud
    finally:
        cloud.run("purge", "--yes")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    copy(EXAMPLE, folder / "train.py")
    return folder


def expected(folder: Path) -> str:
    """The result of the script without any interruption, on this machine."""
    there = folder.parent / "alone"
    environment = {**os.environ, "TERA_OUTPUTS": str(there / "out"), "TERA_CHECKPOINTS": str(there / "saved")}
    subprocess.run(
        [sys.executable, str(folder / "train.py"), STEPS], check=True, env=environment, capture_output=True
    )
    return (there / "out" / "result.txt").read_text()


def runs_for_the(attempt: int, run: dict[str, Any]) -> bool:
    """After an interruption the state stays `running` until the server has looked."""
    return bool(run["state"] == "running" and run["progress"] and run["attempt"] >= attempt)


def test_interrupted_run_has_the_result_of_an_uninterrupted_one(cloud: RealCloud, project: Path) -> None:
    draw = random.Random(11)
    cloud.ok(
        "run", "train.py", "--workdir", project, "--name", "job", "--detach", *SMALL, "--", STEPS, "0.02"
    )
    for attempt in (1, 2):
        wait(cloud, "job", partial(runs_for_the, attempt))
        time.sleep(draw.uniform(0.5, 3))
        instance = cloud.ok("run", "show", "job", "--json").json["instance_id"]
        with cloud.engine() as engine:
            (name,) = [
                each for each in engine.names("instances") if each.endswith(instance.replace("_", "-"))
            ]
            engine.put("instances", name, "state", body={"action": "stop", "timeout": 5, "force": True})
        time.sleep(draw.uniform(0, 2))
        kill_server(cloud)
        cloud.ok("up")
    followed = cloud.run("run", "logs", "-f", "job")
    assert followed.code == 0, followed.err
    assert "continues after step" in followed.out
    cloud.ok("run", "cp", "job", project / "fetched")
    assert (project / "fetched" / "outputs" / "result.txt").read_text() == expected(project)
    shown = cloud.ok("run", "show", "job", "--json").json
    assert shown["attempt"] >= 3
    assert cloud.guests() == set()


GANG = """
import json, os, pathlib, socket, sys, time
rank, world, steps = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), int(sys.argv[1])
place = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
saved = pathlib.Path(os.environ["TERA_CHECKPOINTS"]) / "state.json"
step, total = json.loads(saved.read_text()) if saved.exists() else (0, 0)
print(f"node {rank} of {world} starts after step {step}", flush=True)
if rank == 0:
    waiting = socket.create_server(("0.0.0.0", place[1]))
    peers = [waiting.accept()[0].makefile("rw") for _ in range(world - 1)]
else:
    while True:
        try:
            peers = [socket.create_connection(place).makefile("rw")]
            break
        except OSError:
            time.sleep(0.05)
while step < steps:
    step += 1
    mine = step * (rank + 1)
    if rank == 0:  # the sum of all nodes, given back to all of them
        mine += sum(int(each.readline()) for each in peers)
        for each in peers:
            each.write(f"{mine}\\n"); each.flush()
    else:
        peers[0].write(f"{mine}\\n"); peers[0].flush()
        mine = int(peers[0].readline())
    total += mine
    if rank == 0 and step % 10 == 0:
        new = saved.with_suffix(".tmp")
        new.write_text(json.dumps([step, total]))
        new.rename(saved)
        with open(os.environ["TERA_PROGRESS"], "a") as file:
            file.write(json.dumps({"step": step, "of": steps}) + "\\n")
    time.sleep(0.02)
print(f"node {rank} has {total}", flush=True)
"""


def test_gang_loses_a_node_and_ends_with_the_right_result(cloud: RealCloud, tmp_path: Path) -> None:
    """Two guests exchange a number in every step, over the network of their project, as a training does."""
    folder = tmp_path / "gang"
    folder.mkdir()
    (folder / "gang.py").write_text(GANG)
    cloud.ok(
        "run",
        "gang.py",
        "--workdir",
        folder,
        "--name",
        "gang",
        "--nodes",
        "2",
        "--detach",
        *SMALL,
        "--",
        STEPS,
    )
    wait(cloud, "gang", lambda run: run["state"] == "running" and run["progress"])
    shown = cloud.ok("run", "show", "gang", "--json").json
    lost = shown["node_instances"][1].replace("_", "-")
    with cloud.engine() as engine:
        (name,) = [each for each in engine.names("instances") if each.endswith(lost)]
        engine.put("instances", name, "state", body={"action": "stop", "timeout": 5, "force": True})
    kill_server(cloud)
    cloud.ok("up")
    followed = cloud.run("run", "logs", "-f", "gang")
    assert followed.code == 0, followed.err + cloud.ok("run", "show", "gang").out
    total = sum(step * 3 for step in range(1, int(STEPS) + 1))
    other = cloud.ok("run", "logs", "gang", "--node", "1").out
    assert followed.out.strip().endswith(f"node 0 has {total}")
    assert other.strip().endswith(f"node 1 has {total}")
    assert other.count("node 1 of 2 starts after step") >= 2
    shown = cloud.ok("run", "show", "gang", "--json").json
    assert shown["attempt"] >= 2
    assert len(shown["instances"]) == 2, "the guests were started again and kept"
    assert cloud.guests() == set()


def wait(cloud: RealCloud, name: str, reached: object) -> None:
    for _ in range(200):
        if reached(cloud.ok("run", "show", name, "--json").json):  # type: ignore[operator]
            return
        time.sleep(0.3)
    raise AssertionError(cloud.ok("run", "show", name).out)


def kill_server(cloud: RealCloud) -> None:
    pid = int((cloud.home / "cloud" / "server.pid").read_text().split()[0])
    subprocess.run([*cloud.command()[:6], "kill", "-9", str(pid)], check=True)
