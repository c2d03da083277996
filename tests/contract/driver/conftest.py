"""One suite for all engines. The real one runs where there is one to run."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.contract.driver.grounds import Ground
from tests.contract.driver.simulated_ground import FORMS, simulated_ground


@pytest.fixture(params=[*FORMS, "lxd"])
def ground(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ground]:
    if request.param == "lxd":
        pytest.skip("no real engine yet")
    with simulated_ground(request.param, tmp_path) as found:
        yield found
