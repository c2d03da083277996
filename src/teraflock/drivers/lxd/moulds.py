"""Moulds: containers that are created from an image, started once and stopped. Guests are copies of them.

At its first start, a container changes the owner of all its files to its range of user ids. That takes as
long as the rest of a launch. A copy of a mould with the same range skips it. Each image therefore has a small
stock of moulds, one for each of the first ranges (see `ids.py`). If none of them is free, a launch copies
another mould and takes longer. If the engine maps ids at mount time, files never change owners, and one mould
is enough.

A mould has no network, is confined like any guest, has its range in its name, and never runs again.
"""

import contextlib
import logging
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from teraflock.base.errors import TeraflockError
from teraflock.drivers.lxd import build, confinement, guest, ids, names
from teraflock.drivers.lxd.errors import EngineMissing
from teraflock.drivers.lxd.names import Names
from teraflock.drivers.lxd.rest import LxdClient
from teraflock.drivers.lxd.transfers import end_transfers
from teraflock.instance.engine_errors import EngineBusy, EngineRefused, NoRoom

LOG: Final = logging.getLogger("teraflock.lxd")
UNPACK_SECONDS_MAX: Final = 1800
"""An image with CUDA takes some gigabytes to pack, send and unpack."""
STOCK_RANGES: Final = 32
"""The first ranges are reserved for guests copied from a mould. Other guests get later ones."""
IMAGES_IN_STOCK: Final = 4
"""How many images have a stock at a time: the most recently used ones."""
QUIET_SECONDS: Final = 2.0
"""The stock is filled only after no launch has happened for this long."""
UNPLUG_TRIES_MAX: Final = 50
UNPLUG_AGAIN_SECONDS: Final = 0.1
_PREFIX: Final = "image-"
_ROUGH: Final = "rough-"
_DIGITS: Final = 24


class Moulds:
    """The moulds of one engine. `stock` is the number of moulds for each image in use; 0 or 1 creates none in
    advance."""

    def __init__(
        self, engine: LxdClient, ours: Names, cache: Path, ranges: ids.Ranges, *, stock: int = 0
    ) -> None:
        self._engine = engine
        self._ours = ours
        self._cache = cache
        self._ranges = ranges
        self._stock = min(stock, STOCK_RANGES)
        self._shifts = True
        """Whether the first start changes the files' owners. False if the engine maps ids at mount time."""
        self._wanted: list[str] = []
        """Fingerprints of images whose stock must be filled, most recently used last."""
        self._filling: threading.Thread | None = None
        self._lock = threading.Lock()
        self._quiet_from = 0.0

    def of(self, fingerprint: str) -> Mapping[int, str]:
        """Return the image's moulds by the index of their range. Creates one if there is none."""
        self._quiet_from = time.monotonic() + QUIET_SECONDS
        found = self._found(fingerprint)
        if not found:
            index, name = self._make(fingerprint, any_range=True)
            found = {index: name}
        self._fill_later(fingerprint)
        return found

    def forget(self, fingerprint: str) -> None:
        with self._lock:
            self._wanted = [each for each in self._wanted if each != fingerprint]
        with self._alone(fingerprint):  # not while one is made
            rough = _rough_of(fingerprint)
            for name in (rough, *self._found(fingerprint).values()):
                remove(self._engine, name)
            self._ranges.release(rough)

    def _found(self, fingerprint: str) -> dict[int, str]:
        prefix = f"{_PREFIX}{fingerprint[:_DIGITS]}"
        found = {}
        for name in self._engine.names("instances"):
            digits = name.removeprefix(f"{prefix}-")
            if name.startswith(f"{prefix}-") and digits.isdecimal():
                found[int(digits)] = name
            elif name == prefix:
                # Created before guests had their own ranges; usable as a copy, but in no range.
                found[-1] = name
        return found

    def _make(self, fingerprint: str, *, any_range: bool) -> tuple[int, str]:
        """Create a mould. It gets its name only when it is complete, so an incomplete one left by a crash is
        never copied."""
        key, rough = fingerprint[:_DIGITS], _rough_of(fingerprint)
        with self._alone(fingerprint):
            there = self._found(fingerprint)
            if there and any_range:  # another process was faster
                return next(iter(there.items()))
            if not any_range and fingerprint not in self._wanted:
                raise EngineMissing("The image was removed meanwhile")
            remove(self._engine, rough)
            self._ranges.release(rough)
            missing = [index for index in range(STOCK_RANGES) if index not in there]
            index = self._ranges.take(rough, missing, spare=STOCK_RANGES)
            try:
                if index >= STOCK_RANGES and not any_range:
                    raise NoRoom("Every range of the stock is in use")
                return index, self._moulded(rough, f"{_PREFIX}{key}-{index:04d}", fingerprint, index)
            finally:
                self._ranges.release(rough)

    def _alone(self, fingerprint: str) -> contextlib.AbstractContextManager[None]:
        """Hold the lock on the moulds of an image."""
        self._cache.mkdir(parents=True, exist_ok=True)
        return build.alone(self._cache / f"{_PREFIX}{fingerprint[:_DIGITS]}.lock")

    def _moulded(self, rough: str, name: str, fingerprint: str, index: int) -> str:
        self._engine.create_instance(self._body(rough, fingerprint, index), seconds_max=UNPACK_SECONDS_MAX)
        self._engine.put("instances", rough, "state", body={"action": "start", "timeout": 30})
        self._unplug(rough)
        config = self._engine.get("instances", rough)["config"]
        self._shifts = config.get("volatile.last_state.idmap", "[]") != "[]"
        self._engine.post("instances", rough, body={"name": name, "migration": False})
        return name

    def _unplug(self, name: str) -> None:
        """Stop it. An image that does not boot stops by itself, perhaps while it is being stopped here."""
        for _ in range(UNPLUG_TRIES_MAX):
            with contextlib.suppress(EngineRefused, EngineBusy):
                body = {"action": "stop", "timeout": 30, "force": True}
                self._engine.put("instances", name, "state", body=body)
            if self._engine.get("instances", name)["status"] == "Stopped":
                return
            time.sleep(UNPLUG_AGAIN_SECONDS)

    def _body(self, name: str, fingerprint: str, index: int) -> dict[str, object]:
        return {
            "name": name,
            "type": "container",
            "source": {"type": "image", "fingerprint": fingerprint},
            "profiles": [],
            "config": {
                names.TAG: self._ours.installation,
                "user.machine-id": names.machine_id(name),
                "boot.autostart": "false",
                **guest.no_guest_socket(self._engine.server()),
                **confinement.settings(index),
                "limits.memory": "1GiB",
                "limits.processes": str(guest.PROCESSES_MAX),
            },
            "devices": {"root": {"type": "disk", "path": "/", "pool": self._ours.pool}},
        }

    # Filling the stock

    def _fill_later(self, fingerprint: str) -> None:
        if self._stock < 2:
            return
        with self._lock:
            others = [each for each in self._wanted if each != fingerprint]
            self._wanted = [*others, fingerprint][-IMAGES_IN_STOCK:]
            if self._filling is None or not self._filling.is_alive():
                self._filling = threading.Thread(target=self._fill, name="moulds", daemon=True)
                self._filling.start()

    def _fill(self) -> None:
        """Fill the stock of every image in use. Stop at the first failure: the next launch tries again."""
        try:
            while self._shifts and (fingerprint := self._lacking()):
                time.sleep(max(0.0, self._quiet_from - time.monotonic()))
                if time.monotonic() >= self._quiet_from:
                    self._make(fingerprint, any_range=False)
        except TeraflockError as error:
            LOG.info("could not fill the stock of moulds for now: %s", error.sentence)
        except Exception:
            LOG.exception("filling the stock of moulds failed")

    def _lacking(self) -> str:
        with self._lock:
            wanted = self._wanted[::-1]
        return next((each for each in wanted if len(self._found(each)) < self._stock), "")


def _rough_of(fingerprint: str) -> str:
    """The name of a mould that is not complete."""
    return f"{_ROUGH}{fingerprint[:_DIGITS]}"


def remove(engine: LxdClient, name: str) -> None:
    """Remove an instance if it exists, running or not."""
    with contextlib.suppress(EngineMissing):
        stopped = engine.get("instances", name)["status"] == "Stopped"
        end_transfers(name)
        if not stopped:
            engine.put("instances", name, "state", body={"action": "stop", "timeout": 30, "force": True})
        engine.delete("instances", name)
