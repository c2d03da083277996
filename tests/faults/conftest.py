"""The installation that most walks of runs begin with."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.faults.run_installation import BEGAN, RunInstallation


@pytest.fixture
def installation(tmp_path: Path) -> Iterator[RunInstallation]:
    """Own hosts only. Modules that need another installation have a fixture of this name."""
    made = RunInstallation.in_memory(BEGAN, tmp_path)
    yield made
    made.database.close()
