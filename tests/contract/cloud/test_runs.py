"""Runs on machines of public clouds: the real drivers and loops, fakes of the providers, and real programs in machines.

A script is uploaded, runs, is taken back with a notice and once more without, and continues on other machines from its
checkpoints, which come over SSH or go to a bucket of the region. Its result is that of an uninterrupted one.
"""

import hashlib
import io
import tarfile
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from tests.contract.cloud.ground import SITE, Ground
from tests.fakes.machines import MachineLink, check_namespaces
from tests.faults.installation import Installation
from tests.faults.run_installation import RunInstallation
from tests.faults.test_run_buckets import HttpBucket

from teraflock.catalog.costs import costs_of
from teraflock.drivers.simulated.world import MemoryWorld
from teraflock.run.checkpoint import checkpoint_every_seconds, save_seconds
from teraflock.run.model import Run
from teraflock.run.rules import is_over
from teraflock.run.states import RunPhase
from teraflock.storage.database import Database

STEPS = 60
PADDING_BYTES = 20_000_000
SECONDS_MAX = 150.0
SCRIPT = f"""
import hashlib, json, os, pathlib, signal, time
folder = pathlib.Path(os.environ["TERA_CHECKPOINTS"])
step, state = 0, ""
for path in sorted(folder.glob("step-*"), key=lambda each: int(each.name[5:])):
    step, state = json.loads(path.read_text().strip())
def save(*_):
    new = folder / f"step-{{step}}.tmp"
    new.write_text(json.dumps([step, state]) + " " * {PADDING_BYTES})
    new.rename(folder / f"step-{{step}}")
def stop(*_):
    save()
    raise SystemExit(143)
signal.signal(signal.SIGTERM, stop)
print("every", os.environ["TERA_CHECKPOINT_EVERY"], "from", step, "secret", len(os.environ["TOKEN"]), flush=True)
def allowed():
    try:
        return int(pathlib.Path("/root/allowed").read_text() or 0)
    except FileNotFoundError:
        return 0
while step < {STEPS}:
    while allowed() <= step:
        time.sleep(0.02)
    state = hashlib.sha256(f"{{state}}{{step}}".encode()).hexdigest()
    step += 1
    print(json.dumps({{"step": step, "of": {STEPS}}}), flush=True)
    if step % 10 == 0:
        save()
pathlib.Path(os.environ["TERA_OUTPUTS"], "result").write_text(state)
"""


def expected() -> str:
    state = ""
    for step in range(STEPS):
        state = hashlib.sha256(f"{state}{step}".encode()).hexdigest()
    return state


class RunGround(Ground):
    link: MachineLink

    def linked(self) -> MachineLink:
        return MachineLink(self.fake, self.machines)

    def installed(self, database: Database) -> Installation:
        return RunInstallation(database, MemoryWorld(), self.clock, self.machines.parent / "kept")

    def __init__(self, kind: str, folder: Path) -> None:
        self.machines = folder / "machines"
        self.allowed = 0
        """How many steps the script may compute. So it does not depend on how fast this computer is."""
        super().__init__(kind, folder)

    @property
    def runs(self) -> RunInstallation:
        assert isinstance(self.installation, RunInstallation)
        return self.installation

    def upload(self) -> str:
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as archive:
            head = tarfile.TarInfo("train.py")
            head.size = len(SCRIPT)
            archive.addfile(head, io.BytesIO(SCRIPT.encode()))
        content = buffer.getvalue()
        digest = hashlib.sha256(content).hexdigest()
        self.runs.files.receive(self.runs.tenant.project.id, digest, 0, content, len(content))
        return digest

    def until(self, run: Run, reached: Callable[[Run], bool]) -> Run:
        over_at = time.monotonic() + SECONDS_MAX
        while time.monotonic() < over_at:
            for machine in self.fake.alive:
                path = self.link.path(machine, "/root/allowed")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(str(self.allowed))
            self.runs.turn(1)
            if reached(seen := self.runs.seen(run)):
                return seen
            assert not is_over(seen), (seen.phase, seen.problem, self.runs.text(run))
            time.sleep(0.02)
        raise AssertionError(f"{seen.phase}: {seen.problem}\n{self.runs.text(run)}")

    def kept(self, run: Run) -> list[str]:
        return [each.name for each in self.runs.runs.checkpoints(self.runs.tenant.project.id, run.id)]

    def notice(self) -> None:
        (machine,) = self.fake.alive
        end = (self.clock.now() + timedelta(seconds=90)).strftime("%Y-%m-%dT%H:%M:%SZ")
        machine.notice = self.kind.notice.replace("TIME", end)


@pytest.fixture(params=["gcp", "azure", "tencent"])
def ground(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RunGround]:
    check_namespaces()
    made = RunGround(request.param, tmp_path)
    yield made
    made.driver._inside.close()
    made.link.close()


def step_of(run: Run) -> int:
    return run.progress.step if run.progress else 0


@pytest.mark.long("real programs in machines of fake clouds")
@pytest.mark.parametrize("near", [False, True], ids=["ssh", "bucket"])
def test_a_run_survives_the_loss_of_its_machines(ground: RunGround, near: bool) -> None:
    bucket = HttpBucket()
    if near:
        ground.runs.buckets[ground.kind.first_region] = bucket
    try:
        _carried(ground, bucket if near else None)
    finally:
        bucket.close()


def _carried(ground: RunGround, bucket: HttpBucket | None) -> None:
    run = ground.runs.ask(
        "python3", "train.py", site=SITE, type=ground.kind.type, region=ground.kind.first_region, mode="spot",
        workdir=ground.upload(), secrets={"TOKEN": "hush-hush"},
    )  # fmt: skip
    ground.allowed = 15
    run = ground.until(run, lambda seen: step_of(seen) == 15)
    ground.notice()
    run = ground.until(run, lambda seen: seen.attempt == 2)
    ground.allowed = 35
    run = ground.until(run, lambda seen: step_of(seen) == 35)
    run = ground.until(run, lambda seen: "step-30" in ground.kept(seen))
    (machine,) = ground.fake.alive
    ground.link.power_off(machine)
    ground.allowed = STEPS
    run = ground.until(run, is_over_well)
    assert ground.runs.outputs(run).find(expected().encode()) > 0
    lines = [line for line in ground.runs.text(run).splitlines() if line.startswith("every")]
    assert [line.split()[3] for line in lines] == ["0", "15", "30"], (
        "SIGTERM, and the last copy in the notice"
    )
    _check_interval(ground, run, lines, bucket)
    _check_traffic(ground, run, bucket)
    assert not ground.fake.alive, "every machine is deleted"
    assert not any("hush-hush" in word for word in ground.link.told)
    assert "hush-hush" not in ground.runs.text(run)


def is_over_well(run: Run) -> bool:
    return is_over(run) and (run.phase, run.exit_code) == (RunPhase.DONE, 0)


def _check_interval(ground: RunGround, run: Run, lines: list[str], bucket: HttpBucket | None) -> None:
    """What a copy to the server costs as traffic counts like time to save, where the price is known."""
    saving = save_seconds(PADDING_BYTES)
    loss_hours = ground.runs.loop._acts._choices.loss_hours(run)
    plain = checkpoint_every_seconds(loss_hours, saving)
    every = int(lines[1].split()[1])
    if bucket is None and costs_of(ground.kind.kind).egress is not None:
        assert every > 1.2 * plain
    else:
        assert abs(every - plain) <= max(2, 0.2 * plain)


def _check_traffic(ground: RunGround, run: Run, bucket: HttpBucket | None) -> None:
    kept = ground.runs.runs.checkpoints(ground.runs.tenant.project.id, run.id)
    if bucket is None:
        assert ground.link.received_bytes > 3 * PADDING_BYTES
        assert {each.bucket for each in kept} == {""}
        return
    assert ground.link.received_bytes < PADDING_BYTES, "checkpoints do not pass through the server"
    assert {each.bucket for each in kept} == {ground.kind.first_region}
    pushed = {act.split()[1] for act in bucket.acts if act.startswith("PUT")}
    assert pushed
    assert all(key.startswith(f"{run.id}/") for key in pushed), "only what is of this run"
    assert any(act.startswith("GET") for act in bucket.acts), "restored from there"
