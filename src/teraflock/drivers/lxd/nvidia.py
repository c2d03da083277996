"""NVIDIA's libraries for guests. They must match the host's kernel module, so they are copied from the host.

If NVIDIA's container toolkit is installed, the engine provides them (`nvidia.runtime`). Debian does not
package it. There, the libraries that programs need are copied once per driver version into a folder. Guests
with a card see it, read-only, as `/usr/local/nvidia`. Running guests keep their copy when the driver is
replaced; the next start uses the new one.
"""

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
TOOLKIT: Final = "nvidia-container-cli"
HOOK: Final = Path("/usr/share/lxc/hooks/nvidia")
SNAP: Final = Path("/var/snap")
LISTING_SECONDS_MAX: Final = 20

_WANTED: Final = re.compile(
    r"libcuda|libcudadebugger|libnvidia-(?:ml|cfg|ptxjitcompiler|nvvm|gpucomp|allocator|opencl|pkcs11[a-z0-9-]*)"
)
"""Libraries for computing and for querying the card, not for graphics."""
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


def keep(folder: Path) -> Path:
    """Copy the installed driver and return its folder. The folder's name stays the same when the driver
    changes."""
    files = libraries(_listing())
    version = _version(files)
    copy, link = folder / version, folder / NOW
    if not copy.exists():
        _copy(files, copy)
    if not link.is_symlink() or str(link.readlink()) != version:
        beside = folder / f"{NOW}.new-{os.getpid()}"
        beside.unlink(missing_ok=True)
        beside.symlink_to(version)
        beside.replace(link)
    return link


def libraries(listing: str) -> Mapping[str, Path]:
    """Map library names to files, from the output of `ldconfig -p`. The loader uses the first of two entries
    with one name."""
    found: dict[str, Path] = {}
    for line in listing.splitlines():
        listed = _LISTED.match(line)
        # 64-bit libraries are marked as `libc6,x86-64`. A plain `libc6` is 32-bit.
        if listed and "," in listed["kind"] and _WANTED.fullmatch(listed["name"]):
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


def _copy(files: Mapping[str, Path], to: Path) -> None:
    """Copy everything or nothing: an interrupted copy is never used."""
    beside = to.with_name(f"{to.name}.new-{os.getpid()}")
    shutil.rmtree(beside, ignore_errors=True)
    (beside / "lib").mkdir(parents=True)
    (beside / "bin").mkdir()
    for name, path in files.items():
        shutil.copyfile(path, beside / "lib" / name)
    (beside / "lib" / "libcuda.so").symlink_to("libcuda.so.1")  # some compilers look for this name
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
