"""Builds an image from a recipe: Debian's packages by mmdebstrap, Python's by pip, packed as the engine takes it.

An image is kept on disk under its recipe's digest and built once; a build that was cut off leaves only a folder that
the next build removes. Packages come from where this machine's own apt and pip get theirs.
"""

import contextlib
import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from teraflock.base.errors import Refused
from teraflock.drivers.lxd import recipe as recipes
from teraflock.drivers.lxd.recipe import Python, Recipe

LEFT_OUT: Final = ("doc", "man", "info", "locale", "lintian", "bug")
"""Parts of /usr/share that a guest does without."""
PYTHON_VERSION: Final = "3.11"
"""Of the suite, not of this machine: wheels are fetched here and installed there."""
PLATFORMS: Final = (
    *(f"manylinux_2_{minor}_x86_64" for minor in range(36, 4, -1)),
    "manylinux2014_x86_64",
    "manylinux2010_x86_64",
    "linux_x86_64",
)
ERROR_LINES_MAX: Final = 12


class BuildFailed(Refused):
    """An image could not be built. It is not retried automatically: a package that a mirror lacks stays missing."""

    code = "image_build_failed"
    remedy = "Read the reason in `tera image show`, then build the image again."


def build(recipe: Recipe, cache: Path, *, created_at: int) -> Path:
    """The image's file, built unless it is there. A second process that wants the same waits for the first."""
    target = cache / f"{recipe.name}-{recipes.digest(recipe)[:16]}.tar.zst"
    if target.exists():
        return target
    cache.mkdir(parents=True, exist_ok=True)
    with alone(cache / f"{target.name}.lock"):
        if not target.exists():
            _build(recipe, target, created_at)
    return target


def _build(recipe: Recipe, target: Path, created_at: int) -> None:
    work = target.with_suffix(".building")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(mode=0o700)
    try:
        root = work / "rootfs"
        _unpack(_bootstrapped(recipe, target.parent), root)
        if recipe.python:
            _install_python(recipe.python, root, work / "wheels")
        _tidy(root)
        write_files(recipe, root)
        write_metadata(recipe, work, created_at)
        _pack(work, target)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _bootstrapped(recipe: Recipe, cache: Path) -> Path:
    """Debian alone, kept as well: recipes with the same packages, and one whose files changed, share it."""
    kept = Recipe(name="", title="", suite=recipe.suite, packages=recipe.packages)
    target = cache / f"{recipe.suite}-{recipes.digest(kept)[:16]}.tar"
    with alone(cache / f"{target.name}.lock"):
        if not target.exists():
            beside = target.with_suffix(".building.tar")
            _run(bootstrap_command(recipe, beside, apt_sources(recipe.suite)), "mmdebstrap")
            beside.rename(target)
    return target


def _unpack(archive: Path, root: Path) -> None:
    root.mkdir()
    attributes = ["--numeric-owner", "--xattrs", "--xattrs-include=*", "--same-permissions"]
    _run(["tar", "--extract", f"--file={archive}", f"--directory={root}", *attributes], "tar")


def bootstrap_command(recipe: Recipe, target: Path, sources: Sequence[str]) -> list[str]:
    """Unsafe writing is safe here: a build that a crash cuts off is thrown away."""
    left_out = [f"--dpkgopt=path-exclude=/usr/share/{part}/*" for part in LEFT_OUT]
    return [
        "mmdebstrap",
        "--mode=root",
        "--variant=minbase",
        "--quiet",
        "--dpkgopt=force-unsafe-io",
        *left_out,
        '--aptopt=APT::Install-Recommends "false"',
        *(f"--aptopt={option}" for option in apt_options()),
        f"--include={','.join(recipe.packages)}",
        recipe.suite,
        str(target),
        *sources,
    ]


def apt_sources(suite: str, folder: Path = Path("/etc/apt")) -> list[str]:
    """This machine's own sources where they have the suite; none, and so Debian's, where not (on Ubuntu)."""
    listed = [folder / "sources.list", *sorted((folder / "sources.list.d").glob("*"))]
    return [
        str(path)
        for path in listed
        if path.suffix in (".list", ".sources") and path.is_file() and suite in path.read_text("utf-8")
    ]


def apt_options() -> list[str]:
    """How this machine reaches its sources: proxies and the like."""
    dumped = subprocess.run(["apt-config", "dump", "Acquire"], capture_output=True, text=True, check=False)
    kept = ("::proxy", "check-valid-until", "verify-", "cainfo")
    return [
        line.rstrip(";")
        for line in dumped.stdout.splitlines()
        if any(word in line.partition(" ")[0].casefold() for word in kept) and '"' in line
    ]


def _install_python(python: Python, root: Path, wheels: Path) -> None:
    """Fetched with this machine's pip and its settings, installed inside without a network."""
    fetch = ["download", "--quiet", "--only-binary=:all:", f"--python-version={PYTHON_VERSION}"]
    fetch += [f"--platform={name}" for name in PLATFORMS]
    fetch += ["--implementation=cp", "--abi=cp311", "--abi=abi3", "--abi=none", f"--dest={wheels}"]
    _run([sys.executable, "-m", "pip", *fetch, *python.packages], "pip download")
    inside = root / "wheels"
    inside.mkdir()
    for wheel in wheels.iterdir():
        wheel.rename(inside / wheel.name)
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LANG": "C.UTF-8"}
    chroot = ["chroot", str(root)]
    pip = [*chroot, f"{python.folder}/bin/python", "-m", "pip", "--isolated", "install", "--quiet"]
    _run([*chroot, "python3", "-m", "venv", python.folder], "python -m venv", environment)
    _run([*pip, "--no-index", "--find-links=/wheels", *python.packages], "pip install", environment)
    shutil.rmtree(inside)


def _tidy(root: Path) -> None:
    """What must differ between guests, and what the engine writes, is not in the image."""
    for key in (root / "etc/ssh").glob("ssh_host_*"):
        key.unlink()
    for name in ("etc/machine-id", "etc/hostname", "etc/resolv.conf", "etc/fstab"):
        (root / name).unlink(missing_ok=True)
    (root / "etc/fstab").touch()
    (root / "var/lib/dbus/machine-id").unlink(missing_ok=True)


def write_files(recipe: Recipe, root: Path) -> None:
    """The recipe's own files, its units enabled and masked, and an empty file for each template.

    The empty file carries the mode: the engine writes into it and leaves owner and mode as they are.
    """
    for file in recipe.file:
        _write(root, file.path, file.content.lstrip("\n"), file.mode)
    for template in recipe.template:
        _write(root, template.path, "", template.mode)
    units = root / "etc/systemd/system"
    for name in recipe.masked:
        _link(units / name, "/dev/null")
    for name in recipe.masked_generators:
        _link(root / "etc/systemd/system-generators" / name, "/dev/null")
    for name in recipe.enabled:
        for target in _wanted_by(units / name):
            _link(units / f"{target}.wants" / name, f"/etc/systemd/system/{name}")


def _write(root: Path, path: str, content: str, mode: int) -> None:
    target = root / path.lstrip("/")
    for folder in reversed(target.parents):
        if not folder.exists():
            folder.mkdir(mode=0o700 if folder.name == ".ssh" else 0o755)
    target.unlink(missing_ok=True)
    target.write_text(content, "utf-8")
    target.chmod(mode)


def _wanted_by(unit: Path) -> list[str]:
    lines = unit.read_text("utf-8").splitlines()
    return [word for line in lines if line.startswith("WantedBy=") for word in line[9:].split()]


def _link(path: Path, target: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.symlink_to(target)


def write_metadata(recipe: Recipe, work: Path, created_at: int) -> None:
    """What the engine reads of an image: JSON is YAML enough for it."""
    folder = work / "templates"
    folder.mkdir()
    entries = {}
    for number, template in enumerate(recipe.template):
        name = f"{number}.tpl"
        content = template.content.lstrip("\n").rstrip("\n")
        (folder / name).write_bytes((content + ("\n" if template.ends_with_newline else "")).encode())
        entries[template.path] = {"when": template.when, "template": name}
    metadata = {
        "architecture": os.uname().machine,
        "creation_date": created_at,
        "properties": {"description": recipe.title, "os": "debian", "release": recipe.suite},
        "templates": entries,
    }
    (work / "metadata.yaml").write_bytes(msgspec.json.format(msgspec.json.encode(metadata)))


def _pack(work: Path, target: Path) -> None:
    beside = work / "image.tar.zst"
    tar = ["tar", "--create", f"--file={beside}", f"--directory={work}", "--use-compress-program=zstd -3 -T0"]
    attributes = ["--numeric-owner", "--xattrs", "--xattrs-include=*"]
    _run([*tar, *attributes, "metadata.yaml", "templates", "rootfs"], "tar")
    beside.rename(target)


def _run(command: Sequence[str], what: str, environment: Mapping[str, str] | None = None) -> None:
    try:
        done = subprocess.run(
            command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
    except FileNotFoundError as error:
        raise BuildFailed(
            f"`{command[0]}` is needed to build images and is not installed",
            hint="As root: `sh scripts/engine-install`",
        ) from error
    if done.returncode != 0:
        last = "\n".join((done.stderr or done.stdout).strip().splitlines()[-ERROR_LINES_MAX:])
        raise BuildFailed(
            f"`{what}` failed while an image was built",
            hint="The server's log has its last lines; packages need a reachable mirror",
            context={"output": last},
        )


@contextlib.contextmanager
def alone(lock: Path) -> Iterator[None]:
    """One process at a time, and all of this machine's; a process that dies lets go. The file goes with the last."""
    while True:
        with lock.open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            if not _is_named(lock, file.fileno()):
                continue  # whoever had it removed the file: another may hold a new one
            try:
                yield
            finally:
                lock.unlink(missing_ok=True)
            return


def _is_named(path: Path, file: int) -> bool:
    """Whether an open file is still the one of that name."""
    try:
        return os.path.samestat(path.stat(), os.fstat(file))
    except FileNotFoundError:
        return False
