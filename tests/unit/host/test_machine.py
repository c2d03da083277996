"""Processors, memory, disks, the PCI bus and the kernel log on different kinds of machines."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teraflock.host.bus import faults_in, logged_faults, nvidia_cards
from teraflock.host.machine import container_kind, read_disks, read_memory, read_processors, read_space
from teraflock.host.model import HostDisk


def put(root: Path, **files: str) -> Path:
    """Files by path, with `__` for `/`."""
    for name, content in files.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return root


def processor(number: int, socket: int, core: int) -> str:
    return f"processor\t: {number}\nmodel name\t: Some CPU\nphysical id\t: {socket}\ncore id\t: {core}\n"


def test_sockets_cores_and_threads(tmp_path: Path) -> None:
    blocks = [processor(s * 8 + c * 2 + t, s, c) for s in range(2) for c in range(4) for t in range(2)]
    found = read_processors(put(tmp_path, proc__cpuinfo="\n".join(blocks)), affinity=16)
    assert (found.model, found.sockets, found.cores, found.threads, found.usable) == (
        "Some CPU",
        2,
        8,
        16,
        16,
    )


def test_a_machine_without_socket_information(tmp_path: Path) -> None:
    """Like ARM."""
    root = put(tmp_path, proc__cpuinfo="processor\t: 0\n\nprocessor\t: 1\n\nHardware\t: Grace\n")
    found = read_processors(root, affinity=2)
    assert (found.sockets, found.cores, found.threads) == (1, 2, 2)


@pytest.mark.parametrize(
    ("files", "usable"),
    [
        ({"sys__fs__cgroup__cpu.max": "150000 100000\n"}, 1.5),
        ({"sys__fs__cgroup__cpu.max": "max 100000\n"}, 4),
        (
            {
                "sys__fs__cgroup__cpu__cpu.cfs_quota_us": "200000",
                "sys__fs__cgroup__cpu__cpu.cfs_period_us": "100000",
            },
            2,
        ),
        (
            {
                "sys__fs__cgroup__cpu__cpu.cfs_quota_us": "-1",
                "sys__fs__cgroup__cpu__cpu.cfs_period_us": "100000",
            },
            4,
        ),
        ({"sys__fs__cgroup__cpu.max": "900000 100000\n"}, 4),
        ({"sys__fs__cgroup__cpu.max": "nonsense\n"}, 4),
        ({}, 4),
    ],
)
def test_a_container_may_use_less_than_it_sees(tmp_path: Path, files: dict[str, str], usable: float) -> None:
    assert read_processors(put(tmp_path, **files), affinity=4).usable == usable


MEMINFO = "MemTotal:       16000 kB\nMemFree:  1 kB\nMemAvailable:    9000 kB\n"


@pytest.mark.parametrize(
    ("files", "usable"),
    [
        ({"sys__fs__cgroup__memory.max": "4096000\n"}, 4_096_000),
        ({"sys__fs__cgroup__memory.max": "max\n"}, 16_384_000),
        ({"sys__fs__cgroup__memory__memory.limit_in_bytes": "9223372036854771712"}, 16_384_000),
        ({"sys__fs__cgroup__memory__memory.limit_in_bytes": "1024"}, 1024),
        ({}, 16_384_000),
    ],
)
def test_the_memory_limit_of_a_container_applies(tmp_path: Path, files: dict[str, str], usable: int) -> None:
    found = read_memory(put(tmp_path, proc__meminfo=MEMINFO, **files))
    assert (found.total_bytes, found.usable_bytes) == (16_384_000, usable)
    assert found.available_bytes == min(usable, 9_216_000)


def test_only_physical_disks_are_listed(tmp_path: Path) -> None:
    root = put(
        tmp_path,
        sys__block__nvme0n1__size="2000\n", sys__block__nvme0n1__queue__rotational="0\n",
        sys__block__nvme0n1__device__model="Fast One  \n", sys__block__sda__size="4000",
        sys__block__sda__queue__rotational="1", sys__block__loop0__size="99", sys__block__sdb__size="0",
        sys__block__zram0__size="8",
    )  # fmt: skip
    assert read_disks(root) == (
        HostDisk(name="nvme0n1", model="Fast One", size_bytes=1_024_000, rotates=False),
        HostDisk(name="sda", model="", size_bytes=2_048_000, rotates=True),
    )
    assert read_disks(tmp_path / "nowhere") == ()


def test_space_of_a_missing_folder_is_that_of_its_parent(tmp_path: Path) -> None:
    found = read_space(tmp_path / "not" / "yet")
    assert found.path == str(tmp_path)
    assert found.total_bytes >= found.free_bytes >= 0


@pytest.mark.parametrize(
    ("files", "kind"),
    [
        ({}, ""),
        ({".dockerenv": ""}, "docker"),
        ({"run__.containerenv": ""}, "podman"),
        ({"run__systemd__container": "lxc\n"}, "lxc"),
        ({"proc__1__environ": "PATH=/bin\0container=systemd-nspawn\0"}, "systemd-nspawn"),
    ],
)
def test_containers_are_recognised_by_their_marks(tmp_path: Path, files: dict[str, str], kind: str) -> None:
    assert container_kind(put(tmp_path, **files)) == kind


def test_cards_are_found_on_the_bus_without_a_driver(tmp_path: Path) -> None:
    bus = "sys__bus__pci__devices__"
    for address, vendor, kind in (
        ("0000:3b:00.0", "0x10de", "0x030200"), ("0000:01:00.0", "0x10de", "0x030000"),
        ("0000:01:00.1", "0x10de", "0x040300"), ("0000:00:02.0", "0x8086", "0x030000"),
    ):  # fmt: skip
        put(tmp_path, **{f"{bus}{address}__vendor": f"{vendor}\n", f"{bus}{address}__class": f"{kind}\n"})
    (tmp_path / "sys/bus/pci/devices/0000:77:00.0").mkdir()  # unplugged: its files are gone
    assert nvidia_cards(tmp_path) == ("0000:01:00.0", "0000:3b:00.0")
    assert nvidia_cards(tmp_path / "nowhere") == ()


LOG = """4,1,1,-;NVRM: loading NVIDIA UNIX x86_64 Kernel Module
3,2,2,-;NVRM: Xid (PCI:0000:3b:00): 31, pid=12, name=python, Ch 00000008
6,3,3,-;usb 1-1: new device
3,4,4,-;NVRM: Xid (PCI:0000:3B:00): 79, GPU has fallen off the bus.
3,5,5,-;NVRM: Xid (PCI:0000:5e:00.0): 48, pid='<unknown>', name=<unknown>"""


def test_logged_faults_come_latest_first() -> None:
    assert faults_in(LOG.splitlines()) == {"0000:3b:00.0": (79, 31), "0000:5e:00.0": (48,)}


@given(st.lists(st.text(max_size=80)))
def test_other_log_lines_are_ignored(lines: list[str]) -> None:
    assert faults_in(line for line in lines if "NVRM: Xid" not in line) == {}


def test_a_log_is_read_to_its_end_and_an_unreadable_one_is_none(tmp_path: Path) -> None:
    assert logged_faults(put(tmp_path, log=LOG) / "log") == {"0000:3b:00.0": (79, 31), "0000:5e:00.0": (48,)}
    assert logged_faults(tmp_path / "nowhere") is None
    assert logged_faults(tmp_path) is None, "a folder is not a log"


def test_reading_a_log_without_end_does_not_block(tmp_path: Path) -> None:
    """Like the kernel's log, which has no end of file, only no more records for now."""
    os.mkfifo(tmp_path / "log")
    writer = os.open(tmp_path / "log", os.O_RDWR)
    os.write(writer, LOG.encode())
    assert logged_faults(tmp_path / "log") == {"0000:3b:00.0": (79, 31), "0000:5e:00.0": (48,)}
    os.close(writer)
