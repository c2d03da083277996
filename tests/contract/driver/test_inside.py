"""The inside of a guest, on every engine: the instance's command, files, snapshots, and images made from it."""

from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.contract.driver.grounds import LOOKS_MAX, Ground, refused

from teraflock.fleet.telemetry.model import GuestCounters
from teraflock.instance.copy.model import CopyDriver
from teraflock.instance.driver import Capability, CommandState, FileKind, Handle, Machine
from teraflock.instance.engine_errors import EngineMissing, EngineRefused

FIRST, SECOND = "snp_0000000000000001", "snp_0000000000000002"
PUBLISHED = "img_0000000000000077"
PACKED = "cpy_0000000000000001"


@pytest.mark.parametrize(
    ("command", "exit_code", "log"), [(("echo", "it is", "done"), 0, b"it is done\n"), (("false",), 1, b"")]
)
def test_command_runs_and_its_result_is_kept(
    ground: Ground, command: tuple[str, ...], exit_code: int, log: bytes
) -> None:
    machine = ground.up(command=command)
    assert _ended(ground, machine) == CommandState(exit_code=exit_code, log=log)
    ground.driver.stop(machine.handle, force=False)
    ground.driver.start(machine.handle)
    ground.answers(machine)
    again = ground.driver.command_state(machine.handle)
    assert again == CommandState(exit_code=exit_code, log=log), "a command that ended does not run again"


def test_running_command_has_no_exit_code(ground: Ground) -> None:
    machine = ground.up(command=("sleep", "100000"))
    state = ground.driver.command_state(machine.handle)
    assert state is not None
    assert state.exit_code is None


def test_snapshot_restores_the_disk(ground: Ground) -> None:
    _needs(ground, Capability.SNAPSHOTS)
    machine = ground.up()
    handle = machine.handle
    ground.words(machine, "tee", "/root/file", stdin=b"old")
    for _ in range(2):
        ground.driver.snapshot(handle, FIRST)
    ground.words(machine, "tee", "/root/file", stdin=b"new")
    ground.driver.snapshot(handle, SECOND)
    ground.driver.stop(handle, force=True)
    for snapshot, content in ((FIRST, b"old"), (SECOND, b"new")):
        for _ in range(2):
            ground.driver.restore(handle, snapshot)
        ground.driver.start(handle)
        ground.answers(machine)
        assert ground.words(machine, "cat", "/root/file") == content
        ground.driver.stop(handle, force=True)
    for _ in range(2):
        ground.driver.delete_snapshot(handle, FIRST)
    assert refused(lambda: ground.driver.restore(handle, FIRST)) == "engine_missing"
    ground.driver.restore(handle, SECOND)


def test_repeated_snapshot_returns_the_same_size(ground: Ground) -> None:
    _needs(ground, Capability.SNAPSHOTS)
    machine = ground.up()
    ground.words(machine, "tee", "/root/file", stdin=bytes(100_000))
    size = ground.driver.snapshot(machine.handle, FIRST)
    assert size >= 100_000
    ground.words(machine, "tee", "/root/more", stdin=bytes(10_000))
    assert ground.driver.snapshot(machine.handle, FIRST) == size
    ground.driver.stop(machine.handle, force=True)
    assert ground.driver.snapshot(machine.handle, FIRST) == size


def test_traffic_counter_survives_a_stop_and_ends_with_its_instance(ground: Ground) -> None:
    _needs(ground, Capability.TRAFFIC)
    machine = ground.up()
    before = ground.driver.sent(machine.handle)
    ground.driver.stop(machine.handle, force=True)
    after = ground.driver.sent(machine.handle)
    assert before is not None
    assert after is not None
    assert (after.instance_id, after.epoch) == (machine.id, before.epoch)
    assert after.bytes >= before.bytes
    assert after in ground.driver.all_sent()
    ground.driver.start(machine.handle)
    ground.answers(machine)
    again = ground.driver.sent(machine.handle)
    assert again is not None
    assert again.epoch != after.epoch or again.bytes >= after.bytes, (
        "a counter that starts again has a new epoch"
    )
    ground.driver.delete(machine.handle)
    assert ground.driver.sent(machine.handle) is None
    assert machine.id not in {each.instance_id for each in ground.driver.all_sent()}


def test_running_guests_are_in_the_readings_of_their_host(ground: Ground) -> None:
    _needs(ground, Capability.TELEMETRY)
    machine = ground.up()

    def found() -> GuestCounters | None:
        readings = {each.host: each for each in ground.driver.readings()}
        guests = readings[machine.handle.host].guests
        return next((each for each in guests if each.instance_id == machine.id), None)

    first = found()
    assert first is not None
    assert first.cpu_nanoseconds is not None
    assert first.ram_used_bytes
    assert first.disk_used_bytes is not None
    assert first.received_bytes is not None
    second = found()
    assert second is not None
    assert (second.cpu_nanoseconds or 0) >= first.cpu_nanoseconds
    ground.driver.stop(machine.handle, force=True)
    assert found() is None


def test_delete_removes_snapshots(ground: Ground) -> None:
    _needs(ground, Capability.SNAPSHOTS)
    machine = ground.up()
    ground.driver.snapshot(machine.handle, FIRST)
    ground.driver.delete(machine.handle)
    for stage in ("prepare", "create"):
        ground.advance(machine, stage)
    with pytest.raises(EngineRefused):
        ground.driver.restore(machine.handle, FIRST)


def test_disks_are_packed_and_kept_as_images(ground: Ground) -> None:
    if not isinstance(ground.driver, CopyDriver) or not ground.can(Capability.PLACEMENT):
        pytest.skip("this engine does not pack disks")
    machine = ground.up()
    ground.words(machine, "tee", "/root/file", stdin=b"mine")
    with ground.driver.pack_disk(machine.handle, PACKED) as packed:
        content = b"".join(packed.content or ())
    assert PACKED not in ground.driver.images(), "only the target keeps it"
    try:
        for _ in range(2):
            ground.driver.keep_image(PACKED, iter((content[:7], content[7:])))
        assert ground.driver.images()[PACKED] > 0
        ground.driver.delete(machine.handle)
        made = ground.up(image=PACKED)
        assert ground.words(made, "cat", "/root/file") == b"mine"
        ground.driver.delete(made.handle)
    finally:
        ground.driver.delete_image(PACKED)
    assert PACKED not in ground.driver.images()


def test_images_can_be_made_from_instances(ground: Ground) -> None:
    _needs(ground, Capability.IMAGES_FROM_INSTANCES)
    machine = ground.up()
    ground.words(machine, "tee", "/root/file", stdin=b"mine")
    for _ in range(2):
        ground.driver.publish(machine.handle, PUBLISHED)
    try:
        assert ground.driver.images()[PUBLISHED] > 0
        first = ground.answers(machine).host_key
        ground.driver.delete(machine.handle)
        made = ground.up(image=PUBLISHED)
        assert ground.words(made, "cat", "/root/file") == b"mine"
        assert ground.words(made, "hostname").decode().strip() == made.hostname
        assert ground.answers(made).host_key != first, "two guests must not share a host key"
        ground.driver.delete(made.handle)
    finally:
        for _ in range(2):
            ground.driver.delete_image(PUBLISHED)
    assert PUBLISHED not in ground.driver.images()


def test_image_on_the_engine_is_not_built_again(ground: Ground) -> None:
    _needs(ground, Capability.BUILDS)
    before = ground.driver.images()
    ground.driver.build_image(ground.around.image, "base")
    assert ground.driver.images() == before
    assert before[ground.around.image] > 0


def test_guest_contains_its_configuration(ground: Ground) -> None:
    keys = ("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ one", "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABAQ two")
    machine = ground.up(
        authorized_keys=keys, user_data="not a script: $(id) {{ x }}\n", environment={"WORD": "a b;c"}
    )
    held = ground.words(machine, "cat", "/root/.ssh/authorized_keys").decode()
    assert held.split("\n")[:2] == list(keys)
    assert ground.words(machine, "cat", "/etc/teraflock/user-data").decode() == machine.user_data
    assert b"WORD=a b;c\n" in ground.words(machine, "printenv")
    moved = replace(machine, vcpus=2)
    if ground.can(Capability.LIVE_RESIZE):
        ground.driver.resize(moved)
        assert ground.words(machine, "cat", "/etc/teraflock/user-data").decode() == machine.user_data


def _ended(
    ground: Ground, machine: Machine, look: Callable[[Handle], CommandState | None] | None = None
) -> CommandState | None:
    for _ in range(LOOKS_MAX):
        state = (look or ground.driver.command_state)(machine.handle)
        if state is None or state.exit_code is not None:
            return state
        ground.around.pass_time(0.2)
    raise AssertionError("the command does not end")


def _needs(ground: Ground, capability: Capability) -> None:
    if not ground.can(capability):
        pytest.skip(f"this engine does not support {capability}")


def test_new_run_starts_the_command_with_an_empty_log(ground: Ground) -> None:
    machine = ground.up(command=("echo", "done"))
    assert _ended(ground, machine) == CommandState(exit_code=0, log=b"done\n")
    ground.driver.stop(machine.handle, force=False)
    again = replace(machine, command_run=1)
    for _ in range(2):
        ground.driver.resize(again)
    assert ground.driver.command_state(machine.handle) == CommandState(exit_code=None, log=b"")
    ground.driver.start(machine.handle)
    ground.answers(again)
    assert _ended(ground, again) == CommandState(exit_code=0, log=b"done\n")
    ground.driver.stop(machine.handle, force=True)
    ground.driver.resize(again)  # the same run: its results stay
    assert ground.driver.command_state(machine.handle) == CommandState(exit_code=0, log=b"done\n")


def test_exit_code_of_user_data_can_be_read(ground: Ground) -> None:
    script = "#!/bin/sh\necho it is done\nexit 5\n"
    machine = ground.up(user_data=script)
    assert _ended(ground, machine, ground.driver.user_data_state) == CommandState(
        exit_code=5, log=b"it is done\n"
    )
    ground.driver.stop(machine.handle, force=True)
    state = ground.driver.user_data_state(machine.handle)
    assert state == CommandState(exit_code=5, log=b"it is done\n"), "also for a stopped instance"
    assert ground.driver.user_data_state(ground.up().handle) is None


def test_files_can_be_read_running_and_stopped(ground: Ground) -> None:
    machine = ground.up()
    content = bytes(range(256)) * 1024
    path = "/root/model"
    ground.words(machine, "tee", path, stdin=content)
    for stop in (False, True):
        if stop:
            ground.driver.stop(machine.handle, force=True)
        with ground.driver.file(machine.handle, path) as found:
            assert (found.kind, found.size_bytes) == (FileKind.FILE, len(content))
            assert b"".join(found.content or ()) == content
        with ground.driver.file(machine.handle, "/root") as folder:
            assert folder.kind == FileKind.FOLDER
            assert "model" in folder.names
        with pytest.raises(EngineMissing), ground.driver.file(machine.handle, "/root/nothing"):
            pass


def test_links_in_a_guest_do_not_reach_the_host(ground: Ground, tmp_path: Path) -> None:
    if not ground.around.real:
        pytest.skip("a simulated guest has no links")
    secret = tmp_path / "secret"
    secret.write_text("of the host")
    machine = ground.up()
    ground.words(machine, "ln", "-s", str(secret), "/root/link")
    ground.words(machine, "ln", "-s", str(tmp_path), "/root/folder")
    ground.words(machine, "ln", "-s", "/../../../../../.." + str(tmp_path), "/root/up")
    for stop in (False, True):
        if stop:
            ground.driver.stop(machine.handle, force=True)
        with ground.driver.file(machine.handle, "/root/link") as found:
            assert found.kind == FileKind.LINK
        for path in ("/root/folder/secret", "/root/up/secret"):
            with pytest.raises(EngineMissing), ground.driver.file(machine.handle, path):
                pass


def test_a_huge_log_is_read_only_at_its_end(ground: Ground) -> None:
    if not ground.around.real:
        pytest.skip("a simulated log is as long as its command made it")
    machine = ground.up(command=("truncate", "-s", "1500M", "/var/log/teraflock/command.log"))
    state = _ended(ground, machine)
    assert state is not None
    assert len(state.log) <= 1 << 16
