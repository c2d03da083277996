"""How tests are shared out among the workers of a run: by file, so that a file's servers and databases start once.

Tests of a folder that share a real engine run on one worker. They mostly wait for it, so they start first. Each part
has two such folders, so there are two workers more than there are cores.
"""

import os
from typing import Any, Final

import pytest

ENGINE_FILES: Final = ("tests/engine/", "tests/story/test_cloud_cli_engine.py")
ENGINE_PARAMETERS: Final = ("[lxd", "[incus")


def group(node_id: str) -> str:
    """Tests of one group run on one worker, in order."""
    path = node_id.partition("::")[0]
    return f"{path.rpartition('/')[0]} on an engine" if needs_engine(node_id) else path


def needs_engine(node_id: str) -> bool:
    return node_id.startswith(ENGINE_FILES) or any(word in node_id for word in ENGINE_PARAMETERS)


def order(node_id: str) -> bool:
    """Sorts tests on an engine to the front and leaves the rest as it was: small unit tests come last and fill gaps."""
    return not needs_engine(node_id)


def workers() -> int:
    """For `-n auto`."""
    return len(os.sched_getaffinity(0)) + 2


def scheduler(config: pytest.Config, log: Any) -> object:
    from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

    class ByGroup(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            return group(nodeid)

    config.option.loadscopereorder = False  # `order` has put the longest first
    return ByGroup(config, log)
