"""One holder at a time has the lock, and the last holder removes its file."""

import threading
from pathlib import Path

from teraflock.drivers.lxd.build import alone

THREADS, TURNS = 8, 50


def test_lock_holds_although_its_file_is_removed_each_time(tmp_path: Path) -> None:
    lock, inside, most = tmp_path / "image.lock", 0, 0

    def work() -> None:
        nonlocal inside, most
        for _ in range(TURNS):
            with alone(lock):
                inside += 1
                most = max(most, inside)
                inside -= 1

    threads = [threading.Thread(target=work) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1
    assert list(tmp_path.iterdir()) == []
