"""`tera run` with real containers: interrupted at random moments, it ends with the result of an uninterrupted run."""

import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from shutil import copy

import pytest
from tests.engine.conftest import IMAGES
from tests.engine.house import House, NoHouse
from tests.story.test_cloud_cli_engine import RealCloud

from teraflock.drivers.lxd import build, recipe
from teraflock.drivers.lxd.daemon import LXD

pytestmark = pytest.mark.long(
    "a server and an engine of its own; tests/faults has every step on simulated hosts"
)

EXAMPLE = Path(__file__).parents[2] / "examples" / "train_plain.py"
STEPS = "600"
SMALL = ("--vcpus", "1", "--ram", "512MB", "--disk", "2", "--yes")


@pytest.fixture(scope="module")
def house() -> Iterator[House]:
    try:
        build.build(recipe.read("base"), IMAGES, created_at=1)
        house = House("run-", LXD)
    except (NoHouse, build.BuildFailed) as reason:
        pytest.skip(str(reason))
    yield house
    house.close()


@pytest.fixture(scope="module")
def cloud(house: House, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealCloud]:
    cloud = RealCloud(tmp_path_factory.mktemp("real") / "home", house)
    folder = cloud.home / "cloud" / "engine"
    folder.mkdir(parents=True)
    (folder / "images").symlink_to(IMAGES)
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


def test_interrupted_run_has_the_result_of_an_uninterrupted_one(cloud: RealCloud, project: Path) -> None:
    draw = random.Random(11)
    cloud.ok(
        "run", "train.py", "--workdir", project, "--name", "job", "--detach", *SMALL, "--", STEPS, "0.02"
    )
    for _ in range(2):
        wait(cloud, "job", lambda run: run["state"] == "running" and run["progress"])
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


def wait(cloud: RealCloud, name: str, reached: object) -> None:
    for _ in range(200):
        if reached(cloud.ok("run", "show", name, "--json").json):  # type: ignore[operator]
            return
        time.sleep(0.3)
    raise AssertionError(cloud.ok("run", "show", name).out)


def kill_server(cloud: RealCloud) -> None:
    pid = int((cloud.home / "cloud" / "server.pid").read_text().split()[0])
    subprocess.run([*cloud.command()[:6], "kill", "-9", str(pid)], check=True)
