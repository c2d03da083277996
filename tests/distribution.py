"""How tests are shared out among the workers of a run: by file, so that a file's servers and databases start once.

Tests of a folder that share a real engine run on one worker, or two. They mostly wait for it, so they start first, and
there are two workers more than there are cores.
"""

import os
from collections.abc import Sequence
from typing import Any, Final
from zlib import crc32

import pytest

ENGINE_FILES: Final = ("tests/engine/", "tests/story/test_cloud_cli_engine.py")
HALVED: Final = "tests/engine/"
SECOND_HALF: Final = "test_l"
"""The folder takes longer on one worker than all other tests on the rest. So two workers share it by file name, each
with an engine."""
ENGINE_PARAMETERS: Final = ("[lxd", "[incus")
SPREAD: Final = (
    "tests/faults/",
    "tests/simulation/",
    "tests/api/test_schema.py",
    "tests/contract/cloud/test_walks.py",
)
"""Their tests take long and share little, so each can run on any worker."""
WAITING: Final = "tests/faults/test_two_servers.py"
"""Its tests mostly wait for leases to end, so one worker runs them, from the start, beside others that compute."""
ALWAYS_ON_POSTGRES: Final = (
    "/storage/",
    "tests/upgrade/",
    "concurrent",
    "overlap",
    "upgrade",
    "race",
    "kill",
)
"""Parts of the names of tests that show how PostgreSQL itself behaves."""
LONGEST: Final = (WAITING, "tests/simulation/test_simulation.py")
"""They start before others, so that no worker ends with one alone."""


def group(node_id: str) -> str:
    """Tests of one group run on one worker, in order."""
    path = node_id.partition("::")[0]
    folder, _, file = path.rpartition("/")
    if path.startswith(HALVED):
        return f"{folder} on an engine, {'first' if file < SECOND_HALF else 'second'} half"
    if needs_engine(node_id):
        return f"{folder} on an engine"
    return node_id if path.startswith(SPREAD) and path != WAITING else path


def needs_engine(node_id: str) -> bool:
    return node_id.startswith(ENGINE_FILES) or any(word in node_id for word in ENGINE_PARAMETERS)


def is_long_on_postgres(node_id: str) -> bool:
    """Every test runs on SQLite in the fast part. One of two runs on PostgreSQL there, the other in the long part: the
    statements are the same text, and most are in several tests."""
    name = node_id.partition("[")[0]
    return not any(word in node_id for word in ALWAYS_ON_POSTGRES) and crc32(name.encode()) % 2 == 0


def order(node_id: str) -> int:
    """Sorts tests on an engine to the front, then slow ones. Small unit tests come last and fill gaps."""
    if needs_engine(node_id):
        return 0
    return 1 if node_id.startswith(LONGEST) else 2 if node_id.startswith(SPREAD) else 3


def workers() -> int:
    """For `-n auto`."""
    return len(os.sched_getaffinity(0)) + 2


def to_run_again(reports: Sequence[object]) -> list[str]:
    """The names of failed tests. None if more than tests failed, such as the collection of a worker."""
    names = [each.nodeid for each in reports if isinstance(each, pytest.TestReport)]
    return list(dict.fromkeys(names)) if len(names) == len(reports) else []


def scheduler(config: pytest.Config, log: Any) -> object:
    from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

    class ByGroup(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            return group(nodeid)

    config.option.loadscopereorder = False  # `order` has put the longest first
    return ByGroup(config, log)
