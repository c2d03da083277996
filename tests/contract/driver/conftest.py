"""One suite for all engines. The real one runs where there is one to run."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.contract.driver.grounds import Ground
from tests.contract.driver.lxd_ground import driver_in, lxd_ground
from tests.contract.driver.simulated_ground import FORMS, simulated_ground
from tests.engine.house import House, NoHouse

from teraflock.drivers.lxd import build, recipe
from teraflock.drivers.lxd.driver import Lxd


@pytest.fixture(scope="session")
def contract_house() -> Iterator[House]:
    try:
        house = House("contract-")
    except NoHouse as reason:
        pytest.skip(str(reason))
    yield house
    house.close()


@pytest.fixture(scope="session")
def contract_lxd(contract_house: House) -> Lxd:
    from tests.engine.conftest import IMAGES

    try:
        build.build(recipe.read("base"), IMAGES, created_at=1)
    except build.BuildFailed as reason:
        pytest.skip(f"the base image cannot be built here: {reason}")
    return driver_in(contract_house)


@pytest.fixture(params=[*FORMS, "lxd"])
def ground(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ground]:
    if request.param == "lxd":
        driver = request.getfixturevalue("contract_lxd")
        with lxd_ground(request.getfixturevalue("contract_house"), driver) as found:
            yield found
    else:
        with simulated_ground(request.param, tmp_path) as found:
            yield found
