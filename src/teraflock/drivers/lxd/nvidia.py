"""NVIDIA's libraries for guests. They must match the host's kernel module, so they are copied from the host.

If NVIDIA's container toolkit is installed, the engine provides them (`nvidia.runtime`). Debian does not
package it. There, the libraries that programs need are copied once per driver version into a folder. Guests
with a card see it, read-only, as `/usr/local/nvidia`. Running guests keep their copy when the driver is
replaced; the next start uses the new one.

Guests that draw get another folder, with the libraries for that as well, and two files that tell the loaders of EGL and
Vulkan about them. The loaders themselves are in the guest's own packages.
"""

import logging
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from teraflock.base.errors import Unavailable

IN_GUEST: Final = "/usr/local/nvidia"
NOW: Final = "now"
GRAPHICS: Final = "-graphics"
"""At the end of the names of folders with the libraries that draw, too."""
ICDS: Final = {
    "egl.json": "/etc/glvnd/egl_vendor.d/10_nvidia.json",
    "vulkan.json": "/etc/vulkan/icd.d/nvidia_icd.json",
}
"""Where the loaders in a guest look for each of our files."""
TOOLKIT: Final = "nvidia-container-cli"
HOOK: Final = Path("/usr/share/lxc/hooks/nvidia")
LOG: Final = logging.getLogger("teraflock.lxd")
SNAP: Final = Path("/var/snap")
LISTING_SECONDS_MAX: Final = 20

_WANTED: Final = re.compile(
    r"libcuda|libcudadebugger|libnvidia-(?:ml|cfg|ptxjitcompiler|nvvm|gpucomp|allocator|opencl|pkcs11[a-z0-9-]*)"
)
"""Libraries for computing and for querying the card."""
_DRAWING: Final = re.compile(
    r"lib(?:EGL|GLX|GLESv1_CM|GLESv2)_nvidia|libnvoptix"
    r"|libnvidia-(?:eglcore|glcore|glsi|glvkspirv|tls|rtcore|egl-gbm|vulkan-producer)"
)
_ICD_TEXTS: Final = {
    "egl.json": '{"file_format_version": "1.0.0", "ICD": {"library_path": "libEGL_nvidia.so.0"}}\n',
    "vulkan.json": '{"file_format_version": "1.0.1", "ICD": {"library_path": "libGLX_nvidia.so.0",'
    ' "api_version": "1.3.0"}}\n',
}
_DRAWS: Final = frozenset({"libEGL_nvidia.so.0", "libGLX_nvidia.so.0"})
_LISTED: Final = re.compile(
    r"^\s*(?P<name>[^/\s]+?)\.so(?P<number>\.\S+) \((?P<kind>[^)]*)\) => (?P<path>/\S+)$"
)


class NoDriver(Unavailable):
    """The host has a GPU, but no usable NVIDIA driver."""

    code = "no_driver"
    remedy = "Ask the operator to install the driver on the host."


def engine_provides_it(socket_path: Path) -> bool:
    """Check whether the engine provides the libraries. The LXD snap includes the toolkit."""
    return SNAP in socket_path.parents or (shutil.which(TOOLKIT) is not None and HOOK.exists())


def keep(folder: Path, *, graphics: bool = False) -> Path:
    """Copy the installed driver and return its folder. The folder's name stays the same when the driver
    changes."""
    files, ending = libraries(_listing(), graphics=graphics), GRAPHICS if graphics else ""
    version = _version(files) + ending
    copy, link = folder / version, folder / f"{NOW}{ending}"
    if graphics and not _DRAWS.issubset(files):
        raise NoDriver(
            "The NVIDIA driver on this host has no libraries for EGL and Vulkan, so instances can only compute",
            hint="Install them (Debian: nvidia-egl-icd, nvidia-vulkan-icd), then run `ldconfig`",
        )
    if not copy.exists():
        _copy(files, copy, _ICD_TEXTS if graphics else {})
    if not link.is_symlink() or str(link.readlink()) != version:
        beside = folder / f"{link.name}.new-{os.getpid()}"
        beside.unlink(missing_ok=True)
        beside.symlink_to(version)
        beside.replace(link)
    return link


def renew_graphics(folder: Path) -> None:
    """Copy the current libraries again, if guests of this host draw."""
    if (folder / f"{NOW}{GRAPHICS}").is_symlink():
        try:
            keep(folder, graphics=True)
        except NoDriver as error:
            LOG.warning("%s", error.sentence)


def libraries(listing: str, *, graphics: bool = False) -> Mapping[str, Path]:
    """Map library names to files, from the output of `ldconfig -p`. The loader uses the first of two entries
    with one name."""
    found: dict[str, Path] = {}
    wanted = (_WANTED, _DRAWING) if graphics else (_WANTED,)
    for line in listing.splitlines():
        listed = _LISTED.match(line)
        # 64-bit libraries are marked as `libc6,x86-64`. A plain `libc6` is 32-bit.
        if listed and "," in listed["kind"] and any(each.fullmatch(listed["name"]) for each in wanted):
            found.setdefault(f"{listed['name']}.so{listed['number']}", Path(listed["path"]))
    return found


def _version(files: Mapping[str, Path]) -> str:
    """Read the version from the library's file name: libcuda.so.580.95.05."""
    if "libcuda.so.1" not in files:
        raise NoDriver(
            "The NVIDIA driver on this host has no libcuda.so.1, so instances cannot use its GPUs",
            hint="Install NVIDIA's driver with its libraries (Debian: nvidia-driver, libcuda1), then run `ldconfig`",
        )
    return files["libcuda.so.1"].resolve().name.partition(".so.")[2]


def _copy(files: Mapping[str, Path], to: Path, texts: Mapping[str, str]) -> None:
    """Copy everything or nothing: an interrupted copy is never used."""
    beside = to.with_name(f"{to.name}.new-{os.getpid()}")
    shutil.rmtree(beside, ignore_errors=True)
    (beside / "lib").mkdir(parents=True)
    (beside / "bin").mkdir()
    for name, path in files.items():
        shutil.copyfile(path, beside / "lib" / name)
    (beside / "lib" / "libcuda.so").symlink_to("libcuda.so.1")  # some compilers look for this name
    for name, text in texts.items():
        (beside / name).write_text(text, "ascii")
    for program in _programs():
        shutil.copy(program, beside / "bin")
    for path in (beside, *beside.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or path.parent.name == "bin" else 0o644)
    try:
        beside.rename(to)
    except OSError:  # another process of this installation was faster
        shutil.rmtree(beside, ignore_errors=True)


def _programs() -> Iterable[Path]:
    found = shutil.which("nvidia-smi")
    return [Path(found)] if found else []


def _listing() -> str:
    program = shutil.which("ldconfig", path=f"{os.environ.get('PATH', '')}:/sbin:/usr/sbin") or "ldconfig"
    done = subprocess.run(
        [program, "-p"], capture_output=True, text=True, check=False, timeout=LISTING_SECONDS_MAX
    )
    return done.stdout
