"""How tests are shared out among the workers of a run: by file, so that a file's servers and databases start once.

Tests on a real engine share one engine, so one worker runs all of them. They mostly wait for it, so they start first
and have a worker beyond the number of cores.
"""

import os
from typing import Any, Final

import pytest

ENGINE: Final = "engine"
ENGINE_FILES: Final = ("tests/engine/", "tests/story/test_cloud_cli_engine.py")
ENGINE_PARAMETERS: Final = ("[lxd", "[incus")


def group(node_id: str) -> str:
    """Tests of one group run on one worker, in order."""
    if node_id.startswith(ENGINE_FILES) or any(word in node_id for word in ENGINE_PARAMETERS):
        return ENGINE
    return node_id.partition("::")[0]


def order(node_id: str) -> bool:
    """Sorts the engine's group to the front and leaves the rest as it was: small unit tests come last and fill gaps."""
    return group(node_id) != ENGINE


def workers() -> int:
    """For `-n auto`."""
    return len(os.sched_getaffinity(0)) + 1


def scheduler(config: pytest.Config, log: Any) -> object:
    from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

    class ByGroup(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            return group(nodeid)

    config.option.loadscopereorder = False  # `order` has put the longest first
    return ByGroup(config, log)
