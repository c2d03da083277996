"""NVIDIA's libraries for guests: they must match the host's kernel module, so they are the host's own.

Where NVIDIA's container toolkit is installed the engine brings them in itself (`nvidia.runtime`). Debian does not have
it; there the few that programs need are copied once for each version of the driver into a folder that guests with a
card see, read-only, as `/usr/local/nvidia`. Guests that run keep theirs when the driver is replaced; the next start
finds the new one.
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
"""For computing and for asking after the card; nothing that draws."""
_LISTED: Final = re.compile(
    r"^\s*(?P<name>[^/\s]+?)\.so(?P<number>\.\S+) \((?P<kind>[^)]*)\) => (?P<path>/\S+)$"
)


class NoDriver(Unavailable):
    """The host has a GPU, but no usable NVIDIA driver."""

    code = "no_driver"
    remedy = "The operator installs the driver on the host."


def engine_brings_it(socket_path: Path) -> bool:
    """Whether the engine can do it itself. LXD as a snap has the toolkit within."""
    return SNAP in socket_path.parents or (shutil.which(TOOLKIT) is not None and HOOK.exists())


def keep(folder: Path) -> Path:
    """The driver that is installed now, in a folder whose name stays the same when the driver changes."""
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
    """By the names programs ask for, from what `ldconfig -p` prints. Of two by one name the loader takes the first."""
    found: dict[str, Path] = {}
    for line in listing.splitlines():
        listed = _LISTED.match(line)
        # Those for 64 bits are marked as such: `libc6,x86-64`. A plain `libc6` is for 32.
        if listed and "," in listed["kind"] and _WANTED.fullmatch(listed["name"]):
            found.setdefault(f"{listed['name']}.so{listed['number']}", Path(listed["path"]))
    return found


def _version(files: Mapping[str, Path]) -> str:
    """As the library's own file is called: libcuda.so.580.95.05."""
    if "libcuda.so.1" not in files:
        raise NoDriver(
            "The card's driver has no libcuda.so.1 on this host, so no instance could use the card",
            hint="Install NVIDIA's driver with its libraries (Debian: nvidia-driver, libcuda1), then `ldconfig`",
        )
    return files["libcuda.so.1"].resolve().name.partition(".so.")[2]


def _copy(files: Mapping[str, Path], to: Path) -> None:
    """Whole or not at all: a copy that was cut off is never taken for one."""
    beside = to.with_name(f"{to.name}.new-{os.getpid()}")
    shutil.rmtree(beside, ignore_errors=True)
    (beside / "lib").mkdir(parents=True)
    (beside / "bin").mkdir()
    for name, path in files.items():
        shutil.copyfile(path, beside / "lib" / name)
    (beside / "lib" / "libcuda.so").symlink_to("libcuda.so.1")  # some compilers ask by this name
    for program in _programs():
        shutil.copy(program, beside / "bin")
    for path in (beside, *beside.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or path.parent.name == "bin" else 0o644)
    try:
        beside.rename(to)
    except OSError:  # another process of ours was faster
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
