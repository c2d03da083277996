"""Commands in guests, which may neither end nor close what they print to."""

import threading
import time

from teraflock.drivers.lxd.exec import _Lines


def test_time_is_that_of_both_outputs_together() -> None:
    end = threading.Event()
    lines = _Lines.__new__(_Lines)
    lines._readers = [threading.Thread(target=end.wait, daemon=True) for _ in range(2)]
    for reader in lines._readers:
        reader.start()
    began = time.monotonic()
    assert not lines.ended(0.4)
    assert time.monotonic() - began < 0.7
    end.set()
    assert lines.ended(5)
