"""Builds an image from a recipe: Debian packages with mmdebstrap, Python packages with pip, packed for the
engine.

Each image is built once and cached on disk under the digest of its recipe. An interrupted build leaves only a
folder, which the next build removes. Packages come from the apt and pip sources of this machine.
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
from teraflock.image import recipe as recipes
from teraflock.image.recipe import Python, Recipe

LEFT_OUT: Final = ("doc", "man", "info", "locale", "lintian", "bug")
"""Parts of /usr/share that guests do not need."""
PYTHON_VERSION: Final = "3.11"
"""The suite's version, not this machine's: wheels are downloaded here and installed in the image."""
PLATFORMS: Final = (
    *(f"manylinux_2_{minor}_x86_64" for minor in range(36, 4, -1)),
    "manylinux2014_x86_64",
    "manylinux2010_x86_64",
    "linux_x86_64",
)
ERROR_LINES_MAX: Final = 12


class BuildFailed(Refused):
    """The image could not be built. Teraflock does not retry automatically, because a package missing from a
    mirror stays missing."""

    code = "image_build_failed"
    remedy = "Read the reason in `tera image show`, then build the image again."


def build(recipe: Recipe, cache: Path, *, created_at: int) -> Path:
    """Return the image file, and build it first if needed. A second process that needs the same image waits."""
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
    """Return a plain Debian archive. Recipes with the same packages share it, so changed files reuse it."""
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
    """Disable fsync: an interrupted build is thrown away anyway."""
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
    """Return this machine's sources if they have the suite. Otherwise (on Ubuntu) return none, which means
    Debian's own."""
    listed = [folder / "sources.list", *sorted((folder / "sources.list.d").glob("*"))]
    return [
        str(path)
        for path in listed
        if path.suffix in (".list", ".sources") and path.is_file() and suite in path.read_text("utf-8")
    ]


def apt_options() -> list[str]:
    """Return how this machine reaches its sources, such as proxies."""
    dumped = subprocess.run(["apt-config", "dump", "Acquire"], capture_output=True, text=True, check=False)
    kept = ("::proxy", "check-valid-until", "verify-", "cainfo")
    return [
        line.rstrip(";")
        for line in dumped.stdout.splitlines()
        if any(word in line.partition(" ")[0].casefold() for word in kept) and '"' in line
    ]


def _install_python(python: Python, root: Path, wheels: Path) -> None:
    """Download with this machine's pip and its settings, then install inside the image without a network."""
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
    """Remove what must differ between guests and what the engine writes itself."""
    for key in (root / "etc/ssh").glob("ssh_host_*"):
        key.unlink()
    for name in ("etc/machine-id", "etc/hostname", "etc/resolv.conf", "etc/fstab"):
        (root / name).unlink(missing_ok=True)
    (root / "etc/fstab").touch()
    (root / "var/lib/dbus/machine-id").unlink(missing_ok=True)


def write_files(recipe: Recipe, root: Path) -> None:
    """Write the recipe's files, enable and mask its units, and create an empty file for each template.

    The empty file carries the mode: the engine writes into it and keeps owner and mode.
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
    """Write the image metadata for the engine. JSON is valid YAML."""
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
            f"`{command[0]}` is not installed, but building images needs it",
            hint="Run as root: `sh scripts/engine-install`",
        ) from error
    if done.returncode != 0:
        last = "\n".join((done.stderr or done.stdout).strip().splitlines()[-ERROR_LINES_MAX:])
        raise BuildFailed(
            f"`{what}` failed while building an image",
            hint="See the last lines of the server's log. Check that a package mirror is reachable",
            context={"output": last},
        )


@contextlib.contextmanager
def alone(lock: Path) -> Iterator[None]:
    """Hold a lock across all processes on this machine. A process that dies releases it; the last holder
    removes the file."""
    while True:
        with lock.open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            if not _is_named(lock, file.fileno()):
                continue  # the last holder removed the file: another process may hold a new one
            try:
                yield
            finally:
                lock.unlink(missing_ok=True)
            return


def _is_named(path: Path, file: int) -> bool:
    """Check whether an open file still has this name."""
    try:
        return os.path.samestat(path.stat(), os.fstat(file))
    except FileNotFoundError:
        return False
