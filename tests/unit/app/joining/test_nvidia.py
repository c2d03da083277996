"""The installation of NVIDIA's driver: which commands, and why not. Nothing is installed here."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from teraflock.app.installation import inspection
from teraflock.app.joining import join, nvidia
from teraflock.app.joining.config import HostPlaces
from teraflock.app.joining.join import JoinWish, Ticket
from teraflock.app.joining.nvidia import COMPONENTS, DriverGround, commands, is_secure_boot, needs_driver
from teraflock.base.clock import SystemClock
from teraflock.base.errors import Refused, Unavailable
from teraflock.cli.host import command
from teraflock.host.cards import silent_card
from teraflock.host.inspect import inspect
from teraflock.host.model import Inspection

GROUND = DriverGround(
    release=("debian", "12"),
    machine="x86_64",
    kernel="6.1.0-25-amd64",
    components=frozenset({"main", *COMPONENTS}),
    secure_boot=False,
    container="",
    is_root=True,
)
CARD = silent_card("0000:3b:00.0", None)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Inspection:
    """This machine with a card whose driver is missing, on Debian with all components."""
    found = replace(inspect(), cards=(CARD,), driver="")
    for module in (inspection, join):
        monkeypatch.setattr(module, "inspect", lambda: found)
    monkeypatch.setattr(nvidia, "read_ground", lambda: GROUND)
    return found


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The commands that would have run. They succeed."""
    said: list[list[str]] = []

    def run(words: tuple[str, ...], **_: Any) -> subprocess.CompletedProcess[str]:
        said.append(list(words))
        return subprocess.CompletedProcess(words, 0, "", "")

    monkeypatch.setattr(subprocess, "run", run)
    return said


@pytest.mark.parametrize(
    ("kernel", "flavour"),
    [
        ("6.1.0-25-amd64", "amd64"),
        ("6.1.0-25-cloud-amd64", "cloud-amd64"),
        ("6.1.0-9-rt-amd64", "rt-amd64"),
    ],
)
def test_kernel_and_headers_are_of_the_running_flavour(kernel: str, flavour: str) -> None:
    update, install = commands(replace(GROUND, kernel=kernel))
    assert update == ("apt-get", "update")
    assert install[4:6] == (f"linux-image-{flavour}", f"linux-headers-{flavour}")
    assert "nvidia-kernel-dkms" in install


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"release": ("ubuntu", "24.04")}, "only on Debian 12 for amd64, and this is ubuntu 24.04"),
        ({"release": ("debian", "13")}, "and this is debian 13"),
        ({"machine": "riscv64"}, "for riscv64"),
        ({"container": "lxd"}, "in a container"),
        ({"secure_boot": True}, "Secure Boot is on"),
        ({"kernel": "6.18.44-custom"}, "not the one of Debian 12"),
        ({"kernel": "6.12.9+bpo-amd64"}, "not the one of Debian 12"),
        ({"components": frozenset({"main"})}, "lack `contrib` and `non-free` and `non-free-firmware`"),
        ({"components": frozenset({"main", "contrib", "non-free-firmware"})}, "lack `non-free`, where"),
        ({"is_root": False}, "Only root"),
    ],
)
def test_what_could_not_work_is_refused_with_the_reason(change: dict[str, Any], reason: str) -> None:
    with pytest.raises(Refused, match=reason) as found:
        commands(replace(GROUND, **change))
    assert found.value.hint


@pytest.mark.parametrize(("content", "is_on"), [(b"\6\0\0\0\1", True), (b"\6\0\0\0\0", False), (b"", False)])
def test_secure_boot_is_read_from_the_firmware(tmp_path: Path, content: bytes, is_on: bool) -> None:
    assert not is_secure_boot(tmp_path)
    path = tmp_path / nvidia._SECURE_BOOT
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    assert is_secure_boot(tmp_path) is is_on


def test_a_card_without_a_driver_is_noticed(machine: Inspection) -> None:
    assert needs_driver(machine)
    assert not needs_driver(replace(machine, driver="535.1")), "one broken card of several"
    assert not needs_driver(replace(machine, cards=()))


def test_dry_run_prints_the_commands_and_runs_none(machine: Inspection, ran: list[list[str]]) -> None:
    done = CliRunner().invoke(command, ["install-driver", "--dry-run"])
    assert done.exit_code == 0, done.output
    update, install = done.output.splitlines()
    assert update == "apt-get update"
    assert install.startswith(
        "apt-get install --yes --no-install-recommends linux-image-amd64 linux-headers-amd64"
    )
    assert ran == []
    listed = CliRunner().invoke(command, ["install-driver", "--dry-run", "--json"])
    assert msgspec.json.decode(listed.stdout)["commands"][0] == ["apt-get", "update"]


def test_installing_asks_for_a_reboot(machine: Inspection, ran: list[list[str]]) -> None:
    done = CliRunner().invoke(command, ["install-driver", "--yes"])
    assert "Reboot, then check it with `nvidia-smi`" in done.output
    assert [words[:2] for words in ran] == [["apt-get", "update"], ["apt-get", "install"]]


def test_a_machine_that_needs_no_driver_is_left_alone(
    machine: Inspection, ran: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inspection, "inspect", lambda: replace(machine, cards=()))
    done = CliRunner().invoke(command, ["install-driver", "--yes"])
    assert (done.exit_code, "no NVIDIA card" in done.output, ran) == (0, True, [])


def test_a_failing_command_says_why(machine: Inspection, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(words: tuple[str, ...], **_: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(
            words, 100, "", "warning\nE: Unable to locate package nvidia-smi\n"
        )

    monkeypatch.setattr(subprocess, "run", fails)
    with pytest.raises(Unavailable, match="`apt-get update` failed: E: Unable to locate package nvidia-smi"):
        nvidia.install(GROUND, lambda words: None)


def joins(home: Path, *, install_driver: bool = False) -> Callable[[], object]:
    asked = JoinWish(ticket=Ticket("t", "192.0.2.1", 1, "0" * 64), install_driver=install_driver)
    return lambda: join.join(HostPlaces(home), asked, SystemClock().now, lambda words: None)


def test_joining_offers_to_install_the_driver(
    machine: Inspection, ran: list[list[str]], tmp_path: Path
) -> None:
    with pytest.raises(Refused, match="has 1 NVIDIA card, but no driver answers") as found:
        joins(tmp_path)()
    assert "--install-driver" in found.value.hint
    assert ran == []
    with pytest.raises(Refused, match="is installed, and works after a reboot"):
        joins(tmp_path, install_driver=True)()
    assert [words[:2] for words in ran] == [["apt-get", "update"], ["apt-get", "install"]]
    assert not HostPlaces(tmp_path).config.exists()
