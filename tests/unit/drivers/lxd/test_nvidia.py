"""The driver's libraries for guests: which ones are copied, and that a copy is complete or absent."""

import json
import os
import stat
from pathlib import Path

import pytest

from teraflock.drivers.lxd import nvidia

VERSION = "580.95.05"


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of libraries as a driver's installer leaves them, and a listing with their names."""
    folder = tmp_path / "installed"
    folder.mkdir()
    install(folder, VERSION)
    monkeypatch.setattr(nvidia, "_listing", lambda: listing(folder))
    monkeypatch.setattr(nvidia, "_programs", lambda: [folder / "nvidia-smi"])
    return folder


def install(folder: Path, version: str) -> None:
    for path in folder.iterdir():
        path.unlink()
    for name, number in (
        ("libcuda", "1"),
        ("libnvidia-ml", "1"),
        ("libnvidia-nvvm", "4"),
        ("libEGL_nvidia", "0"),
        ("libGLX_nvidia", "0"),
    ):
        real = folder / f"{name}.so.{version}"
        real.write_text(f"{name} of {version}")
        (folder / f"{name}.so.{number}").symlink_to(real.name)
    (folder / f"libnvidia-eglcore.so.{version}").write_text("draws")
    (folder / f"libnvidia-gpucomp.so.{version}").write_text("has no other name")
    (folder / "nvidia-smi").write_text("a program")


def listing(folder: Path) -> str:
    lines = [f"\t{path.name} (libc6,x86-64) => {path}" for path in sorted(folder.glob("*.so.*"))]
    old = [f"\t{path.name} (libc6) => /usr/lib32/{path.name}" for path in sorted(folder.glob("*.so.*"))]
    return "\n".join(
        [
            "9 libs found in cache `/etc/ld.so.cache'",
            *old,
            *lines,
            "\tlibcurl.so.4 (libc6,x86-64) => /usr/lib/libcurl.so.4",
        ]
    )


def test_compute_libraries_are_copied_under_their_soname(installed: Path, tmp_path: Path) -> None:
    now = nvidia.keep(tmp_path / "kept")
    found = {path.name for path in (now / "lib").iterdir()}
    assert found >= {"libcuda.so.1", "libcuda.so", "libnvidia-ml.so.1", "libnvidia-nvvm.so.4"}
    assert f"libnvidia-gpucomp.so.{VERSION}" in found
    assert not any("EGL" in name or "curl" in name for name in found)
    assert (now / "lib" / "libcuda.so").read_text() == f"libcuda of {VERSION}"
    assert not any(path.is_symlink() and path.readlink().is_absolute() for path in (now / "lib").iterdir())


def test_guests_that_draw_have_a_folder_of_their_own(installed: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    computes, draws = nvidia.keep(kept), nvidia.keep(kept, graphics=True)
    more = {path.name for path in (draws / "lib").iterdir()} - {
        path.name for path in (computes / "lib").iterdir()
    }
    names = {"libEGL_nvidia.so", "libGLX_nvidia.so", "libnvidia-eglcore.so"}
    assert {name.partition(".so")[0] + ".so" for name in more} == names
    for file in nvidia.ICDS:
        library = json.loads((draws / file).read_text())["ICD"]["library_path"]
        assert (draws / "lib" / library).exists()
        assert not (computes / file).exists()
    install(installed, "590.1")
    nvidia.renew_graphics(kept)
    assert (draws / "lib" / "libEGL_nvidia.so.0").read_text() == "libEGL_nvidia of 590.1"


def test_a_driver_that_cannot_draw_is_refused(installed: Path, tmp_path: Path) -> None:
    for path in installed.glob("libEGL*"):
        path.unlink()
    nvidia.keep(tmp_path / "kept")
    with pytest.raises(nvidia.NoDriver, match="EGL"):
        nvidia.keep(tmp_path / "kept", graphics=True)


def test_guests_can_read_the_copy_with_any_umask(installed: Path, tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        now = nvidia.keep(tmp_path / "kept").resolve()
    finally:
        os.umask(before)
    for path in (now, *now.rglob("*")):
        mode = stat.S_IMODE(path.stat().st_mode)
        assert mode & 0o005 == (0o005 if path.is_dir() or path.name == "nvidia-smi" else 0o004), path


def test_new_driver_has_the_same_path_and_old_copy_is_kept(installed: Path, tmp_path: Path) -> None:
    first = nvidia.keep(tmp_path / "kept")
    held = first.resolve()
    install(installed, "590.1")
    again = nvidia.keep(tmp_path / "kept")
    assert again == first
    assert (again / "lib" / "libcuda.so.1").read_text() == "libcuda of 590.1"
    assert (held / "lib" / "libcuda.so.1").read_text() == f"libcuda of {VERSION}", (
        "running guests have it open"
    )


def test_interrupted_copy_is_repeated(
    installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(nvidia, "_programs", lambda: [tmp_path / "nowhere"])
        with pytest.raises(FileNotFoundError):
            nvidia.keep(tmp_path / "kept")
    assert not (tmp_path / "kept" / nvidia.NOW).exists()
    now = nvidia.keep(tmp_path / "kept")
    assert (now / "bin" / "nvidia-smi").read_text() == "a program"


def test_missing_libraries_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nvidia, "_listing", lambda: "0 libs found in cache")
    with pytest.raises(nvidia.NoDriver) as refused:
        nvidia.keep(tmp_path / "kept")
    assert "nvidia-driver" in refused.value.hint
    assert not (tmp_path / "kept").exists()
