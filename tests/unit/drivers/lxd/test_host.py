"""Kernel settings of the host, processors, and finding the engine."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teraflock.drivers.lxd import daemon, kernel, processors
from teraflock.drivers.lxd.daemon import INCUS, LXD, Daemon, NoEngine
from teraflock.drivers.lxd.names import Names


def settings_in(folder: Path, **values: int) -> None:
    for name in kernel.RAISED:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{values.get(path.name, 1)}\n")


def test_limits_are_raised_and_never_lowered(tmp_path: Path) -> None:
    settings_in(tmp_path, max_user_watches=1 << 40)
    assert {each.name for each in kernel.too_low(tmp_path)} == {
        "fs/inotify/max_user_instances",
        "kernel/keys/maxkeys",
        "kernel/pid_max",
        "net/ipv4/ipfrag_high_thresh",
        "net/ipv4/neigh/default/gc_thresh2",
        "net/ipv4/neigh/default/gc_thresh3",
        "net/ipv6/neigh/default/gc_thresh2",
        "net/ipv6/neigh/default/gc_thresh3",
        "net/netfilter/nf_conntrack_frag6_high_thresh",
        "net/netfilter/nf_conntrack_max",
    }
    assert kernel.raise_limits(tmp_path) == ()
    assert int((tmp_path / "fs/inotify/max_user_watches").read_text()) == 1 << 40
    assert int((tmp_path / "fs/inotify/max_user_instances").read_text()) == kernel.INOTIFY_INSTANCES_MIN


def test_failed_setting_is_reported_and_others_are_raised(tmp_path: Path) -> None:
    settings_in(tmp_path)
    stubborn = tmp_path / "fs/inotify/max_user_instances"
    stubborn.unlink()
    stubborn.symlink_to("/proc/sys/kernel/ostype")  # read-only, and not a number
    assert kernel.raise_limits(tmp_path) == ()
    (tmp_path / "kernel/keys/maxkeys").write_text("5\n")
    assert [each.found for each in kernel.too_low(tmp_path)] == [5]


def test_bridge_filter_follows_the_kernel_setting(tmp_path: Path) -> None:
    assert not kernel.filters_bridges(tmp_path)
    path, other = (tmp_path / each for each in kernel.BRIDGE_FILTERS)
    path.parent.mkdir(parents=True)
    path.write_text("1\n")
    assert not kernel.filters_bridges(tmp_path), "IPv6 is not filtered"
    for text, filtered in (("", False), ("1\n", True), ("0\n", False)):
        other.write_text(text)
        assert kernel.filters_bridges(tmp_path) is filtered
    path.write_text("0\n")
    assert kernel.filter_bridges(tmp_path)
    path.unlink()
    assert not kernel.filter_bridges(tmp_path), "without the module there is no setting"
    assert not path.exists()


@given(chosen=st.sets(st.integers(0, 300), min_size=1))
def test_processors_are_counted(chosen: set[int]) -> None:
    assert processors.counted(",".join(map(str, sorted(chosen)))) == len(chosen)
    low, high = min(chosen), max(chosen)
    assert processors.counted(f"{low}-{high}\n") == high - low + 1
    assert processors.counted("\n") == 0


def test_granted_processors_are_found_in_both_kinds_of_cgroups(tmp_path: Path) -> None:
    assert processors.granted("tera-x", "ins-1", tmp_path) is None
    for folder, text, count in ((tmp_path, "0-3\n", 4), (tmp_path / "cpuset", "1,5\n", 2)):
        path = folder / "lxc.payload.tera-x_ins-1" / "cpuset.cpus"
        path.parent.mkdir(parents=True)
        path.write_text(text)
        assert processors.granted("tera-x", "ins-1", tmp_path) == count


def test_engine_in_the_environment_comes_first(tmp_path: Path) -> None:
    environment = {"LXD_DIR": str(tmp_path), "PATH": "/bin"}
    assert daemon.find(environment, known=()) == tmp_path / "unix.socket"
    assert daemon.find({}, known=(tmp_path / "unix.socket",)) is None, (
        "a socket that does not answer is not an engine"
    )


def test_other_process_is_never_mistaken_for_our_daemon(tmp_path: Path) -> None:
    ours = Daemon(tmp_path / "lxd")
    assert ours.pid() is None
    (tmp_path / "lxd.pid").write_text("1\n")  # a process id that now belongs to another process
    assert ours.pid() is None
    ours.stop()
    (tmp_path / "lxd.pid").write_text("nonsense\n")
    assert ours.pid() is None


def test_folder_belongs_to_one_program_forever(tmp_path: Path) -> None:
    ours = Daemon(tmp_path / "engine", program=INCUS)
    assert ours.program() == INCUS, "the program that was requested"
    for noted, other in ((INCUS, LXD), (LXD, INCUS)):
        (tmp_path / "engine.kind").write_text(f"{noted.name}\n")
        assert Daemon(tmp_path / "engine", program=other).program() == noted
    (tmp_path / "engine.kind").unlink()
    (tmp_path / "engine").mkdir()
    assert Daemon(tmp_path / "engine").program() == LXD, "a folder from before notes existed"


def test_daemon_without_its_program_raises_no_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda *_, **__: None)
    for program in (LXD, INCUS):
        with pytest.raises(NoEngine, match=f"{program.title} is not installed"):
            Daemon(tmp_path / program.name, program=program).ensure()
        assert not (tmp_path / program.name).exists()
    assert daemon.installed() is None


@pytest.mark.parametrize("wrong", ["", "abc", "UPPER", "with space", "a" * 17, "a/b12", "ab_12"])
def test_installation_id_is_checked(wrong: str) -> None:
    with pytest.raises(ValueError):
        Names(wrong)
