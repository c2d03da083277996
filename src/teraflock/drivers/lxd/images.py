"""Our images in the engine. An image's id is its alias there; several ids may refer to one image.

An image is removed together with its last alias. Instances do not need their image after creation. Guests are
copied from an image's moulds (see `moulds.py`), which are removed before it: after a crash, the image is still found.
"""

import contextlib
import os
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

from teraflock.drivers.lxd import build, guest, names
from teraflock.drivers.lxd.errors import EngineMissing, EngineTaken
from teraflock.drivers.lxd.moulds import UNPACK_SECONDS_MAX, Moulds
from teraflock.drivers.lxd.names import Names
from teraflock.drivers.lxd.pool import Pool
from teraflock.drivers.lxd.rest import LxdClient
from teraflock.image import recipe
from teraflock.instance.engine_errors import EngineRefused

SHIPPED: Final = "base"
"""The recipe that every installation has. Its archive is never removed."""
DIGEST: Final = "teraflock.recipe"
MADE_FOR: Final = "teraflock.image"
"""The id of an image that was made from a guest: a crash may leave it without its alias."""
COPY_PREFIX: Final = "cpy-"
"""The engine's names of copies of disks begin with it."""
HOLES_BYTES_MAX: Final = 1 << 30
FIND_SECONDS_MAX: Final = 600
_PUBLISH: Final = "publish-"


class LxdImages:
    def __init__(
        self,
        engine: LxdClient,
        ours: Names,
        cache: Path,
        moulds: Moulds,
        pool: Pool,
        *,
        now: Callable[[], int],
    ) -> None:
        self._engine = engine
        """Client for our project."""
        self._ours = ours
        self._cache = cache
        self._moulds = moulds
        self._pool = pool
        self._now = now

    def held(self) -> Mapping[str, int]:
        return {
            alias["name"]: int(image["size"])
            for image in self._engine.get("images", recursion=1)
            for alias in image.get("aliases") or ()
        }

    def built(self) -> frozenset[str]:
        """Return the ids of images that were built from a recipe."""
        return frozenset(
            alias["name"]
            for image in self._engine.get("images", recursion=1)
            if DIGEST in image["properties"]
            for alias in image.get("aliases") or ()
        )

    def build(self, image_id: str, recipe_name: str) -> None:
        wanted = recipe.read(recipe_name)
        digest = recipe.digest(wanted)
        held = self._held_under(image_id)
        if held and held["properties"].get(DIGEST) == digest:
            return
        file = build.build(wanted, self._cache, created_at=self._now())
        with build.alone(self._cache / f"{file.name}.engine.lock"):
            fingerprint = self._find(DIGEST, digest) or self._upload(file, digest)
            self._moulds.of(fingerprint)
            self._name(image_id, fingerprint)
        if held and held["fingerprint"] != fingerprint:
            self._forget(held["fingerprint"], image_id)

    def publish(self, name: str, image_id: str) -> None:
        if self._held_under(image_id):
            return
        fingerprint = self._find(MADE_FOR, image_id) or self._published(name, image_id)
        self._moulds.of(fingerprint)
        self._name(image_id, fingerprint)
        self._drop_snapshot(name, image_id)

    @contextlib.contextmanager
    def packed(self, name: str, image_id: str) -> Iterator[Iterator[bytes]]:
        """Pack the current disk of a guest, and remove everything afterwards. Also removes what a crash left."""
        for left in self._engine.names("instances", name, "snapshots"):
            if left.startswith(f"{_PUBLISH}{COPY_PREFIX}"):
                self._engine.delete("instances", name, "snapshots", left)
        try:
            fingerprint = self._published(name, image_id)
            self._name(image_id, fingerprint)  # so that `delete` finds it after a crash
            self._drop_snapshot(name, image_id)
            yield self._engine.stream("images", fingerprint, "export")
        finally:
            self._drop_snapshot(name, image_id)
            self.delete(image_id)

    def keep(self, image_id: str, content: Iterable[bytes]) -> None:
        """Create an image from a packed disk."""
        if self._held_under(image_id):
            return
        self._cache.mkdir(parents=True, exist_ok=True)
        file = self._cache / f"{names.guest(image_id)}.part"
        try:
            with file.open("wb") as written:
                for piece in content:
                    written.write(piece)
            self._name(image_id, self._upload(file, ""))
        finally:
            file.unlink(missing_ok=True)

    def _published(self, name: str, image_id: str) -> str:
        """Publish from a temporary snapshot, so that the guest can keep running."""
        snapshot = names.guest(f"{_PUBLISH}{image_id}")
        with contextlib.suppress(EngineTaken):
            self._engine.post("instances", name, "snapshots", body={"name": snapshot, "stateful": False})
        try:
            self._check_holes(name, snapshot)
        except EngineRefused:
            self._drop_snapshot(name, image_id)
            raise
        body = {
            "source": {"type": "snapshot", "name": f"{name}/{snapshot}"},
            "compression_algorithm": "zstd",
            "properties": {names.TAG: self._ours.installation, MADE_FOR: image_id},
        }
        return str(self._engine.post("images", body=body, seconds_max=UNPACK_SECONDS_MAX)["fingerprint"])

    def _check_holes(self, name: str, snapshot: str) -> None:
        """Refuse files with large holes. The engine fills them in an image, which has no limit: a file without content
        could take all of the pool."""
        place = Path("containers-snapshots") / f"{self._ours.project}_{name}" / snapshot / "rootfs"
        disk_bytes = int(self._engine.get("instances", name)["config"].get(guest.DISK, "0"))
        found = length_of_files(self._pool.path() / place)
        if disk_bytes and found > disk_bytes + HOLES_BYTES_MAX:
            raise EngineRefused(
                f"Its files would take {found >> 30} GiB without their holes, and its disk has {disk_bytes >> 30} GiB",
                hint="Remove sparse files, which look larger than they are: `find / -xdev -size +1G`",
            )

    def _drop_snapshot(self, name: str, image_id: str) -> None:
        with contextlib.suppress(EngineMissing):
            self._engine.delete("instances", name, "snapshots", names.guest(f"{_PUBLISH}{image_id}"))

    def delete(self, image_id: str) -> None:
        for image in self._engine.get("images", recursion=1):
            known = [alias["name"] for alias in image.get("aliases") or ()]
            if image_id in known or (not known and image["properties"].get(MADE_FOR) == image_id):
                self._forget(image["fingerprint"], image_id)

    def moulds_of(self, image_id: str) -> Mapping[int, str]:
        """Return the moulds that guests of the image are copied from. Raise `EngineMissing` without the
        image."""
        alias = self._engine.get("images", "aliases", image_id)
        return self._moulds.of(alias["target"])

    def _held_under(self, image_id: str) -> dict[str, Any] | None:
        try:
            alias = self._engine.get("images", "aliases", image_id)
            found: dict[str, Any] = self._engine.get("images", alias["target"])
        except EngineMissing:
            return None
        return found

    def _find(self, key: str, value: str) -> str | None:
        for image in self._engine.get("images", recursion=1):
            if image["properties"].get(key) == value:
                return str(image["fingerprint"])
        return None

    def _upload(self, file: Path, digest: str) -> str:
        given = {names.TAG: self._ours.installation, **({DIGEST: digest} if digest else {})}
        properties = urlencode(given)
        headers = {"X-LXD-filename": file.name, "X-LXD-properties": properties, "X-LXD-public": "0"}
        # Incus has its own names for the same headers. Each engine ignores the other's.
        headers |= {name.replace("LXD", "Incus"): value for name, value in headers.items()}
        answer = self._engine.post("images", body=file, headers=headers, seconds_max=UNPACK_SECONDS_MAX)
        return str(answer["fingerprint"])

    def _name(self, image_id: str, fingerprint: str) -> None:
        body = {"name": image_id, "target": fingerprint}
        try:
            self._engine.post("images", "aliases", body=body)
        except EngineTaken:
            self._engine.put("images", "aliases", image_id, body={"target": fingerprint})

    def _forget(self, fingerprint: str, image_id: str) -> None:
        """Take the name of an image away, and remove it if that was its last one."""
        with contextlib.suppress(EngineMissing):
            image = self._engine.get("images", fingerprint)
            known = {alias["name"] for alias in image.get("aliases") or ()}
            if known - {image_id}:
                if image_id in known:
                    self._engine.delete("images", "aliases", image_id)
                return
            self._moulds.forget(fingerprint)
            forget_archive(self._cache, image["properties"].get(DIGEST, ""))
            self._engine.delete("images", fingerprint)


def length_of_files(folder: Path) -> int:
    """Return the sum of the lengths of all files below a folder, which may be of a tenant. 0 if it cannot be read."""
    command = ["find", os.fspath(folder), "-xdev", "-type", "f", "-printf", r"%i %s\n"]
    done = subprocess.run(command, capture_output=True, check=False, timeout=FIND_SECONDS_MAX)
    return sum(dict(map(_numbers, done.stdout.splitlines())).values())


def _numbers(line: bytes) -> tuple[int, int]:
    """A file and its length. A file with several names counts once."""
    inode, _, length = line.partition(b" ")
    return int(inode), int(length)


def forget_archive(cache: Path, digest: str) -> None:
    """Remove the archive of a built image: it takes gigabytes and can be built again. The base image's
    archive is kept."""
    if not digest:
        return
    for file in cache.glob(f"*-{digest[:16]}.tar.zst"):
        if not file.name.startswith(f"{SHIPPED}-"):
            file.unlink(missing_ok=True)
