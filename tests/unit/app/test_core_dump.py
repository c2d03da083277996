"""A core dump of the server has no credentials."""

import subprocess
import sys
from pathlib import Path

import pytest

CRASH = """
import os, resource, sys
from teraflock.app.server import keep_memory_out_of_core_dumps
if sys.argv[1] == "kept out":
    keep_memory_out_of_core_dumps()
    assert resource.getrlimit(resource.RLIMIT_CORE)[0] == 0
    assert int(open("/proc/self/coredump_filter").read(), 16) == 0
_, most = resource.getrlimit(resource.RLIMIT_CORE)
resource.setrlimit(resource.RLIMIT_CORE, (most, most))  # as if the limit did not hold
secret = "-".join(["key", "of", "an", "account"])
os.abort()
"""


@pytest.mark.skipif(not Path("/proc/self/coredump_filter").exists(), reason="this system has no such filter")
def test_a_core_dump_has_no_credentials(tmp_path: Path) -> None:
    assert b"key-of-an-account" not in crashed(tmp_path, "kept out")
    if without := crashed(tmp_path, "plain"):  # not where a program gets core dumps
        assert b"key-of-an-account" in without


def crashed(folder: Path, way: str) -> bytes:
    """The core dump of a process that crashed. Empty: there is none in its folder."""
    (folder / way).mkdir()
    done = subprocess.run(
        [sys.executable, "-c", CRASH, way], cwd=folder / way, capture_output=True, check=False
    )
    assert done.returncode == -6, done.stderr
    return b"".join(path.read_bytes() for path in (folder / way).iterdir())
