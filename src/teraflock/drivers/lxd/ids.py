"""Assigns user ids to guests: each guest on this host has its own range, which it shares with no other guest.

The kernel counts and protects many things by user id alone, such as keys, inotify instances and signals.
Guests with a common range would affect each other there. Invariants:
- a range belongs to one guest at a time, across all installations on this host. The claim is a link in a
  folder that they all share, so it survives a reboot, and two processes never get the same range;
- a range goes to a new guest only when no process and no kernel key of its last owner is left;
- `keep_only` releases a claim whose guest no longer exists.

The ranges start after those that systemd gives to containers and end at 31 bits. Nothing else uses them.
"""

import contextlib
import os
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from teraflock.instance.engine_errors import NoRoom

FOLDER: Final = Path("/var/lib/teraflock/ids")
FIRST: Final = 0x7000_0000
SIZE: Final = 65_536
"""Ids per guest: all that Debian and its packages use, including `nobody`."""
COUNT: Final = 4095
GRANTS: Final = (Path("/etc/subuid"), Path("/etc/subgid"))
GRANT: Final = f"0:{FIRST}:{COUNT * SIZE}\n"
"""By number, not as `root`: `newuidmap` reads both, but LXD treats the ranges of `root` as those of other
owners' guests."""
ORPHAN_SECONDS: Final = 600
"""How long a claim may exist without a guest: the guest may still be in creation."""

Traces = Callable[[], set[int]]


class Ranges:
    """The ranges of one installation's guests. A range is identified by its index; `base` returns its first
    id."""

    def __init__(
        self,
        installation: str,
        folder: Path = FOLDER,
        traces: Traces | None = None,
        grants: Sequence[Path] = GRANTS,
    ) -> None:
        self._installation = installation
        self._folder = folder
        self._traces = traces or indexes_in_use
        self._grants = grants
        self._orphans: dict[str, float] = {}
        """When each claim was first found without a guest."""

    def take(self, name: str, prefer: Iterable[int] = (), *, spare: int = 0) -> int:
        """Return a guest's range: its current one, else a preferred free one, else any free one from `spare`
        on."""
        grant(self._grants)
        if (held := self.of(name)) is not None:
            return held
        self._folder.mkdir(parents=True, exist_ok=True)
        used = self._traces()
        for index in (*prefer, *_from_anywhere(spare)):
            if index not in used and self._claim(index, name):
                return index
        raise NoRoom(
            "Every range of user ids on this host is in use",
            hint="Delete unused instances",
        )

    def of(self, name: str) -> int | None:
        return self._ours().get(name)

    def adopt(self, first_ids: Mapping[str, str]) -> None:
        """Claim again the ranges that guests already have, unless someone else has them: the folder may have
        been lost.

        `first_ids` are the first ids in the engine's records, by guest name.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        ours = self._ours()
        for name, first_id in first_ids.items():
            index = index_of(int(first_id)) if first_id.isdecimal() else None
            if index is not None and name not in ours:
                self._claim(index, name)

    def release(self, name: str) -> None:
        if (index := self.of(name)) is not None:
            self._drop(index)

    def keep_only(self, names: Iterable[str], seconds: float = ORPHAN_SECONDS) -> None:
        """Release our claims for guests that have been missing from `names` for a while."""
        kept, now = set(names), time.monotonic()
        orphans = {name: index for name, index in self._ours().items() if name not in kept}
        self._orphans = {name: self._orphans.get(name, now) for name in orphans}
        for name, since in self._orphans.items():
            if now - since >= seconds:
                self._drop(orphans[name])

    def leave(self) -> None:
        """Release all our claims. Revoke the grant if no installation on this host has a claim left."""
        for index in self._ours().values():
            self._drop(index)
        if not any(True for _ in self._claims()):
            revoke(self._grants)
            remove_empty(self._folder)

    def _ours(self) -> dict[str, int]:
        mark = f"{self._installation}/"
        return {owner.removeprefix(mark): index for index, owner in self._claims() if owner.startswith(mark)}

    def _claims(self) -> Iterator[tuple[int, str]]:
        with contextlib.suppress(FileNotFoundError):
            for path in self._folder.iterdir():
                with contextlib.suppress(OSError):  # released in the meantime
                    if path.name.isdecimal():
                        yield int(path.name), str(path.readlink())

    def _claim(self, index: int, name: str) -> bool:
        try:
            self._path(index).symlink_to(f"{self._installation}/{name}")
        except FileExistsError:
            return False
        return True

    def _drop(self, index: int) -> None:
        self._path(index).unlink(missing_ok=True)

    def _path(self, index: int) -> Path:
        return self._folder / f"{index:04d}"


def remove_empty(folder: Path) -> None:
    """Remove a folder that installations share, and its parent, if they are empty."""
    with contextlib.suppress(OSError):
        folder.rmdir()
        folder.parent.rmdir()


def base(index: int) -> int:
    """Return the first host id of a range, which is root in the guest."""
    return FIRST + index * SIZE


def index_of(first_id: int) -> int | None:
    """Return the range that contains an id, or None for an id outside all ranges."""
    index = (first_id - FIRST) // SIZE
    return index if 0 <= index < COUNT else None


def is_confined(config: Mapping[str, str]) -> bool:
    """Check the settings that a guest was started with, not those for its next start."""
    return f'"Maprange":{SIZE}}}' in config.get("volatile.idmap.current", "")


def indexes_in_use(proc: Path = Path("/proc")) -> set[int]:
    """Return the ranges that have a running process or a kernel key."""
    ids = [*_ids_of_processes(proc), *_ids_of_keys(proc / "key-users")]
    return {index for index in map(index_of, ids) if index is not None}


def grant(files: Iterable[Path]) -> None:
    """Allow root to map the ranges. LXC calls `newuidmap`, which allows only what these files list.

    Repeated with every claim, because another installation that leaves this host revokes it. The cost is
    negligible.
    """
    for path in files:
        text = path.read_text("utf-8") if path.exists() else ""
        if GRANT not in text:
            with path.open("a", encoding="utf-8") as file:
                file.write(("" if text.endswith("\n") or not text else "\n") + GRANT)


def revoke(files: Iterable[Path]) -> None:
    for path in files:
        if path.exists() and GRANT in (text := path.read_text("utf-8")):
            beside = path.with_name(f"{path.name}.tera")
            beside.write_text(text.replace(GRANT, ""), "utf-8")
            beside.chmod(path.stat().st_mode & 0o777)
            beside.replace(path)


def _from_anywhere(spare: int) -> Iterator[int]:
    """List ranges from a random start, so that a released range is reused as late as possible."""
    count = COUNT - spare
    start = secrets.randbelow(count)
    return (spare + (start + step) % count for step in range(count))


def _ids_of_processes(proc: Path) -> Iterator[int]:
    for entry in os.scandir(proc):
        if entry.name.isdecimal():
            with contextlib.suppress(OSError):  # it ended in the meantime
                yield entry.stat().st_uid


def _ids_of_keys(path: Path) -> Iterator[int]:
    try:
        lines = path.read_text("ascii").splitlines()
    except OSError:  # a kernel without keys
        return
    for line in lines:
        uid = line.partition(":")[0].strip()
        if uid.isdecimal():
            yield int(uid)
