"""Instances as jobs of a real Slurm cluster."""

import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.contract.cloud.ground import derive
from tests.contract.driver.grounds import network
from tests.fakes.slurm import Cluster, slurm_cluster

from teraflock.base.clock import SystemClock
from teraflock.base.errors import BadInput, TeraflockError
from teraflock.drivers import registry
from teraflock.drivers.clouds.link import SshLink
from teraflock.drivers.opening import Opening
from teraflock.drivers.slurm import jobs
from teraflock.drivers.slurm.commands import SlurmCommands, error_of
from teraflock.drivers.slurm.driver import SlurmDriver
from teraflock.instance.archive import archive
from teraflock.instance.driver import Capability, Handle, Machine, Port, Readiness, Rental, Seen
from teraflock.instance.engine_errors import (
    BadCredentials,
    EngineBusy,
    EngineDown,
    EngineRefused,
    NoRoom,
    OverQuota,
)
from teraflock.instance.model import InstanceId

MARK = "m7e81w00sm3jsp32"
ONE, TWO = InstanceId("ins_m7e81w00zd0ddegj"), InstanceId("ins_m7e81w00zd0ddegk")
TYPES = "small=debug/cpus:1,ram_gb:0,price:0.25; whole=debug/cpus:2,ram_gb:0,price:0.50; none=nowhere/cpus:1"
SECONDS_MAX = 30.0


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with slurm_cluster() as cluster:
        yield cluster


@pytest.fixture
def site(cluster: Cluster, tmp_path: Path) -> Iterator[SlurmDriver]:
    found = opened(cluster, tmp_path)
    yield found
    found._inside.close()
    for id in (ONE, TWO):
        gone(found, Handle(id, ""))


def opened(cluster: Cluster, folder: Path) -> SlurmDriver:
    """The site as a new process opens it."""
    options = {"types": TYPES, "conf": str(cluster.conf), "addresses": f"{cluster.node}=127.0.0.1"}
    opening = Opening(
        name="lab", options=options, folder=folder, mark=MARK, clock=SystemClock(), derive=derive
    )
    site = registry.open_site("slurm", opening)
    assert isinstance(site, SlurmDriver)
    return site


def machine(id: InstanceId = ONE, type: str = "small", launch: int = 1, **changes: Any) -> Machine:
    where = "nowhere" if type == "none" else "debug"
    return Machine(
        handle=Handle(id, ""), hostname="one", image="img_1", vcpus=2 if type == "whole" else 1, ram_bytes=64 << 20,
        disk_bytes=1, network=network(1), address="", ports=(Port(0, 22),), authorized_keys=("ssh-ed25519 AAAAtenant",),
        rental=Rental(type=type, region=where, token=f"{id}.{launch}.0"), **changes,
    )  # fmt: skip


def ready(site: SlurmDriver, wanted: Machine) -> Readiness:
    over_at = time.monotonic() + SECONDS_MAX
    while time.monotonic() < over_at:
        if (found := site.ready(wanted)).ready:
            return found
        time.sleep(0.3)
    pytest.fail(f"not ready: {found.doing}")


def gone(site: SlurmDriver, handle: Handle) -> None:
    over_at = time.monotonic() + SECONDS_MAX
    site.delete(handle)
    while site.look(handle) is not None:
        assert time.monotonic() < over_at, "the job is still listed"
        time.sleep(0.3)


def test_a_job_is_launched_once_used_and_cancelled(
    site: SlurmDriver, cluster: Cluster, tmp_path: Path
) -> None:
    assert {Capability.EXEC, Capability.FILES} == site.capabilities
    made = site.create(machine())
    assert opened(cluster, tmp_path).create(machine()) == made, "found by its name"
    handle = Handle(ONE, "", made.remote_id)
    found = ready(site, machine())
    assert found.host_key.startswith("ssh-ed25519 ")
    (seen,) = site.sightings()
    assert seen.made is not None
    assert (seen.instance_id, seen.seen, seen.made.price_micros_per_hour) == (ONE, Seen.RUNNING, 250_000)
    ran = site.run(handle, ("sh", "-c", "cat; echo $SLURM_JOB_ID >&2; exit 3"), stdin=b"in", seconds_max=20)
    assert (ran.exit_code, ran.stdout) == (3, b"in")
    (tmp_path / "out").write_text("result")
    assert b"result" in b"".join(archive(lambda path: site.file(handle, path), str(tmp_path / "out")))
    gone(site, handle)
    site.delete(handle)
    assert list(site.sightings()) == []


def test_a_newer_launch_cancels_the_older_one(site: SlurmDriver) -> None:
    first = site.create(machine())
    second = site.create(machine(launch=2))
    assert first.remote_id != second.remote_id
    assert [each.made and each.made.remote_id for each in site.sightings() if each.seen != Seen.PENDING] in (
        [], [second.remote_id],
    )  # fmt: skip
    assert second.remote_id in {each.made.remote_id for each in site.sightings() if each.made}
    ready(site, machine(launch=2))
    gone(site, Handle(ONE, ""))


def test_a_command_has_a_log_and_an_exit_code(site: SlurmDriver) -> None:
    command = ("sh", "-c", 'echo "$GREETING from $SLURM_JOB_NAME"; exit 7')
    given = machine(command=command, environment={"GREETING": "it's me"}, user_data="#!/bin/sh\necho first\n")
    made = site.create(given)
    handle = Handle(ONE, "", made.remote_id)
    ready(site, given)
    over_at = time.monotonic() + SECONDS_MAX
    while (state := site.command_state(handle)) is None or state.exit_code is None:
        assert time.monotonic() < over_at
        time.sleep(0.3)
    assert (state.exit_code, state.log) == (7, b"it's me from tf-m7e81w00sm3jsp32-m7e81w00zd0ddegj-1-0\n")
    before = site.user_data_state(handle)
    assert before is not None
    assert (before.exit_code, before.log) == (0, b"first\n")
    gone(site, handle)


def test_a_full_cluster_queues_the_job_and_says_so(site: SlurmDriver) -> None:
    site.create(machine(type="whole"))
    ready(site, machine(type="whole"))
    site.create(machine(TWO, type="whole"))
    waiting = site.ready(machine(TWO, type="whole"))
    assert (waiting.ready, "queue of Slurm" in waiting.doing) == (False, True)
    gone(site, Handle(ONE, ""))
    assert ready(site, machine(TWO, type="whole")).ready
    gone(site, Handle(TWO, ""))


def test_what_slurm_refuses_is_an_error_with_its_words(
    site: SlurmDriver, cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(EngineRefused, match="partition"):
        site.create(machine(TWO, type="none", launch=5))
    monkeypatch.setattr(
        "teraflock.drivers.slurm.commands.SECONDS_MAX", 2.0
    )  # Slurm looks for the file for 60 s
    broken = SlurmCommands(str(tmp_path / "none.conf"))
    with pytest.raises((EngineDown, EngineRefused, BadCredentials)):
        broken.call("squeue")
    assert list(site.sightings()) == []


class Lost(SlurmCommands):
    """A server that dies after `sbatch`, before it has its answer."""

    def call(self, program: str, *words: str, stdin: str = "") -> str:
        output = super().call(program, *words, stdin=stdin)
        if program == "sbatch":
            raise EngineDown("The answer was lost")
        return output


def test_a_lost_answer_launches_once(site: SlurmDriver, cluster: Cluster, tmp_path: Path) -> None:
    site._slurm = Lost(str(cluster.conf))
    with pytest.raises(EngineDown):
        site.create(machine())
    again = opened(cluster, tmp_path).create(machine())
    assert len(list(site.sightings())) == 1
    gone(site, Handle(ONE, "", again.remote_id))


# Without a cluster


def fake(**changes: Any) -> SlurmDriver:
    given = {"types": TYPES, **changes}
    return SlurmDriver(
        "lab", MARK, SystemClock(), slurm=SlurmCommands(), link=SshLink(), derive=derive, user="me",
        types=given["types"], wait=timedelta(hours=1),
    )  # fmt: skip


@pytest.mark.parametrize(
    "types",
    ["", ";", "small", "small=", "small=debug", "small=debug/", "a=b/cpus:x", "a=b/colour:red", "a=b/cpus:1,,",
     "a=b/gpus:1", "a=b/gpu:nonsense9", "a=b/cpus:1;a=b/cpus:2", "a b=c/cpus:1", "a=--x/cpus:1", "a=b/price:-1x"],
)  # fmt: skip
def test_wrong_types_are_refused_with_a_hint(types: str) -> None:
    with pytest.raises(BadInput) as refused:
        fake(types=types)
    assert refused.value.hint


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("sbatch: error: Batch job submission failed: Invalid partition name specified", EngineRefused),
        ("sbatch: error: QOSMaxSubmitJobPerUserLimit", OverQuota),
        ("squeue: error: Unable to contact slurm controller (connect failure)", EngineDown),
        ("sbatch: error: Access/permission denied", BadCredentials),
        ("sbatch: error: Requested node configuration is not available", NoRoom),
        ("sbatch: error: something new\n\x1b[31m", EngineRefused),
    ],
)
def test_errors_by_their_words(said: str, kind: type[TeraflockError]) -> None:
    error = error_of("sbatch", said)
    assert type(error) is kind or (kind is EngineRefused and isinstance(error, EngineRefused))
    assert "\x1b" not in error.sentence
    assert error.hint


def test_only_our_jobs_are_read_from_a_listing() -> None:
    mine = f"tf-{MARK}-m7e81w00zd0ddegj-1-0"
    lines = [
        f"7|RUNNING|{mine}|node1|debug|small|None", f"8|COMPLETED|{mine}|node1|debug|small|None",
        "9|RUNNING|tf-other-x-1-0|node1|debug|small|None", "10|RUNNING|train|node1|debug|(null)|None",
        f"11|PENDING|{mine.replace('-1-0', '-2-0')}|n/a|debug|small|(Res|ources)",
    ]  # fmt: skip
    found = jobs.read_jobs(MARK, "\n".join(lines))
    assert [(each.id, each.token, each.node) for each in found] == [
        ("7", f"{ONE}.1.0", "node1"),
        ("11", f"{ONE}.2.0", ""),
    ]
    with pytest.raises(ValueError, match="another form"):
        jobs.read_jobs(MARK, "slurm_load_jobs error: Invalid\n")


def test_a_launch_that_may_have_succeeded_is_not_repeated_at_once() -> None:
    class Empty:
        def call(self, program: str, *words: str, stdin: str = "") -> str:
            assert program == "squeue"
            return ""

    site = fake()
    site._slurm = Empty()
    asked = machine()
    assert asked.rental is not None
    again = replace(asked, rental=replace(asked.rental, asked_at=SystemClock().now()))
    with pytest.raises(EngineBusy):
        site.create(again)
