"""Our images in the engine. An image's id is its alias there; several ids may refer to one image.

An image is removed together with its last alias. Instances do not need their image after creation. Guests are
copied from an image's moulds (see `moulds.py`), which are removed with it.
"""

import contextlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

from teraflock.drivers.lxd import build, names, recipe
from teraflock.drivers.lxd.errors import EngineMissing, EngineTaken
from teraflock.drivers.lxd.moulds import UNPACK_SECONDS_MAX, Moulds
from teraflock.drivers.lxd.names import Names
from teraflock.drivers.lxd.rest import LxdClient

SHIPPED: Final = "base"
"""The recipe that every installation has. Its archive is never removed."""
DIGEST: Final = "teraflock.recipe"


class LxdImages:
    def __init__(
        self, engine: LxdClient, ours: Names, cache: Path, moulds: Moulds, *, now: Callable[[], int]
    ) -> None:
        self._engine = engine
        """Client for our project."""
        self._ours = ours
        self._cache = cache
        self._moulds = moulds
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
            self._forget(held["fingerprint"])

    def publish(self, name: str, image_id: str) -> None:
        """Publish from a temporary snapshot, so that the guest can keep running."""
        if self._held_under(image_id):
            return
        snapshot = names.guest(f"publish-{image_id}")
        with contextlib.suppress(EngineTaken):
            self._engine.post("instances", name, "snapshots", body={"name": snapshot, "stateful": False})
        body = {
            "source": {"type": "snapshot", "name": f"{name}/{snapshot}"},
            "compression_algorithm": "zstd",
            "properties": {names.TAG: self._ours.installation},
        }
        fingerprint = self._engine.post("images", body=body, seconds_max=UNPACK_SECONDS_MAX)["fingerprint"]
        self._moulds.of(fingerprint)
        self._name(image_id, fingerprint)
        with contextlib.suppress(EngineMissing):
            self._engine.delete("instances", name, "snapshots", snapshot)

    def delete(self, image_id: str) -> None:
        held = self._held_under(image_id)
        if held is None:
            return
        with contextlib.suppress(EngineMissing):
            self._engine.delete("images", "aliases", image_id)
        self._forget(held["fingerprint"])

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
        properties = urlencode({names.TAG: self._ours.installation, DIGEST: digest})
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

    def _forget(self, fingerprint: str) -> None:
        with contextlib.suppress(EngineMissing):
            image = self._engine.get("images", fingerprint)
            if not image.get("aliases"):
                self._engine.delete("images", fingerprint)
                self._moulds.forget(fingerprint)
                forget_archive(self._cache, image["properties"].get(DIGEST, ""))


def forget_archive(cache: Path, digest: str) -> None:
    """Remove the archive of a built image: it takes gigabytes and can be built again. The base image's
    archive is kept."""
    if not digest:
        return
    for file in cache.glob(f"*-{digest[:16]}.tar.zst"):
        if not file.name.startswith(f"{SHIPPED}-"):
            file.unlink(missing_ok=True)
