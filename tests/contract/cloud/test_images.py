"""Images by name, Jupyter and commands on rented machines of every cloud: what they get and what is awaited."""

import base64
import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.contract.cloud.direct import ID, Direct
from tests.contract.cloud.ground import KINDS, MORE, Ground

from teraflock.base.errors import TeraflockError
from teraflock.drivers.clouds.errors import Unusable
from teraflock.instance.driver import Handle, Machine, Readiness
from teraflock.instance.model import Access
from teraflock.instance.states import Phase

ALL = sorted({**KINDS, **MORE})
FOLDER = "/var/lib/teraflock/"


@pytest.fixture(params=ALL)
def cloud(request: pytest.FixtureRequest, tmp_path: Path) -> Direct:
    return Direct(request.param, tmp_path)


def launched(cloud: Direct, **given: Any) -> Machine:
    cloud.site.refresh_types()
    made = cloud.site.create(cloud.machine(given=given))
    assert made is not None
    cloud.wait(60)
    return cloud.machine(remote_id=made.remote_id, given=given)


def watched(cloud: Direct, machine: Machine) -> tuple[set[str], Readiness]:
    """What a machine did until it was ready, and where it is."""
    doings = set[str]()
    for _ in range(8):
        found = cloud.site.ready(machine)
        if found.ready:
            return doings, found
        doings.add(found.doing)
        cloud.wait(6)  # longer than a listing is used
    pytest.fail(f"not ready: {doings}")


def given_files(cloud: Direct) -> dict[str, str]:
    """The files of ours that the only machine was given, at its first boot or over SSH."""
    (machine,) = cloud.fake.alive
    if machine.boot.startswith("#cloud-config"):
        files = json.loads(machine.boot.partition("\n")[2])["write_files"]
        return {
            each["path"].removeprefix(FOLDER): base64.b64decode(each["content"]).decode() for each in files
        }
    text = machine.boot + cloud.link.sent.get(machine.id, "")
    found = re.findall(rf"echo (\S*) \| base64 -d > {FOLDER}(\S+)", text)
    return {path: base64.b64decode(content).decode() for content, path in found}


def test_an_image_by_name_is_installed_before_the_machine_is_ready(cloud: Direct) -> None:
    machine = launched(cloud, recipe="pytorch", user_data="#!/bin/sh\n", command=("python3", "train.py"))
    assert "installing the image `pytorch`" in watched(cloud, machine)[0]
    files = given_files(cloud)
    assert "torch>=2.8,<3" in files["image"]
    assert "torch.cuda.is_available() or False" in files["image"]
    assert list(files)[-3:] == ["image", "user-data", "command"], "in the order in which they run"
    assert cloud.site.boot_time_max(machine) > cloud.site.cloud.boot_time_max


def test_an_image_that_cannot_be_installed_is_given_back_with_the_reason(cloud: Direct) -> None:
    cloud.link.image_codes, cloud.link.image_looks = [1], 1
    with pytest.raises(Unusable, match="image `tensorflow` cannot be installed: hello"):
        watched(cloud, launched(cloud, recipe="tensorflow"))


def test_the_provider_s_image_is_enough_for_the_image_base(cloud: Direct) -> None:
    machine = launched(cloud, recipe="base")
    watched(cloud, machine)
    assert "image" not in given_files(cloud)
    assert cloud.site.boot_time_max(machine) == cloud.site.cloud.boot_time_max


@pytest.mark.parametrize("recipe", ["base", "jupyter"])
def test_jupyter_runs_inside_the_machine_only(cloud: Direct, recipe: str) -> None:
    machine = launched(cloud, recipe=recipe, jupyter_token="f00d")
    doings, found = watched(cloud, machine)
    assert f"installing the image `{recipe}`" in doings
    assert set(found.endpoints) == {22}
    files = given_files(cloud)
    assert files["jupyter-token"] == "f00d"
    assert "--ip=127.0.0.1" in files["jupyter"]
    assert "0.0.0.0" not in str(files)
    assert not [words for words in cloud.link.ran if "f00d" in str(words)], (
        "no other process may read the token"
    )


def test_a_command_reaches_the_machine_and_is_not_run_for_another_look(cloud: Direct) -> None:
    machine = launched(cloud, command=("true",))
    for _ in range(2):
        watched(cloud, machine)
    assert "exec true" in given_files(cloud)["command"]
    assert "command.run" not in str(cloud.link.sent)


@pytest.mark.parametrize("kind", ["gcp", "paperspace"])
def test_a_command_runs_again_when_its_machine_was_stopped_and_started(kind: str, tmp_path: Path) -> None:
    cloud = Direct(kind, tmp_path)
    machine = launched(cloud, command=("true",))
    again = cloud.machine(
        token=f"{ID}.2.0", remote_id=machine.handle.remote_id, given={"command": ("true",), "command_run": 1}
    )
    assert cloud.site.ready(again).ready
    (sent,) = cloud.link.sent.values()
    assert sent.count("/run command") == 1
    assert "= 1 ] && exit" in sent


def test_only_the_first_key_of_a_machine_is_trusted_where_none_can_be_given(tmp_path: Path) -> None:
    cloud = Direct("runpod", tmp_path)
    machine = launched(cloud)
    first = cloud.site.ready(machine).host_key
    assert first
    cloud.fake.alive[0].host_key = "ssh-ed25519 AAAAsomebodyelse"
    pinned = Handle(ID, "", machine.handle.remote_id, first)
    ran = len(cloud.link.ran)
    with pytest.raises(TeraflockError, match="does not answer over SSH"):
        cloud.site.run(pinned, ("cat",), stdin=b"secret", seconds_max=5)
    assert len(cloud.link.ran) == ran, "nothing was sent to the other machine"


@pytest.mark.parametrize("kind", ["lambda", "runpod"])
def test_the_loops_wait_for_the_image_and_pin_the_host_key(kind: str, tmp_path: Path) -> None:
    ground = Ground(kind, tmp_path)
    ground.launch(image="pytorch", access=Access.JUPYTER)
    ground.settle()
    assert (ground.one().phase, ground.one().image) == (Phase.RUNNING, "pytorch")
    machine = ground.fake.alive[0]
    machine.host_key = "ssh-ed25519 AAAAsomebodyelse"
    tenant = ground.installation.tenant
    with pytest.raises(TeraflockError, match="does not answer over SSH"):
        ground.installation.service.guests.run(tenant.project.id, "one", ("id",), stdin=b"", seconds_max=5)
    ground.delete()
    ground.settle()
    assert ground.recorded() == ground.fake.charged() > 0


def test_an_image_that_fails_moves_the_launch_to_the_next_place(tmp_path: Path) -> None:
    ground = Ground("lambda", tmp_path)
    ground.link.image_codes = [1]
    ground.launch(image="pytorch")
    ground.work(rounds=60, seconds=5)
    ground.settle()
    (machine,) = ground.fake.alive
    assert (ground.one().phase, machine.region) == (Phase.RUNNING, ground.kind.other_region)
    assert len(ground.fake.machines) == 2
