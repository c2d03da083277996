"""One suite for all engines. Real engines are tested if they are installed."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.contract.driver.grounds import Ground
from tests.contract.driver.joined_ground import joined_ground
from tests.contract.driver.lxd_ground import driver_in, lxd_ground
from tests.contract.driver.simulated_ground import FORMS, simulated_ground
from tests.engine.house import House, NoHouse

from teraflock.drivers.lxd import build, recipe
from teraflock.drivers.lxd.daemon import INCUS, LXD, Program
from teraflock.drivers.lxd.driver import Lxd


def _house(program: Program) -> Iterator[tuple[House, Lxd]]:
    from tests.engine.conftest import IMAGES

    try:
        build.build(recipe.read("base"), IMAGES, created_at=1)
        house = House(f"contract-{program.name}-", program)
    except NoHouse as reason:
        pytest.skip(str(reason))
    except build.BuildFailed as reason:
        pytest.skip(f"the base image cannot be built here: {reason}")
    yield house, driver_in(house)
    house.close()


@pytest.fixture(scope="session")
def contract_lxd() -> Iterator[tuple[House, Lxd]]:
    yield from _house(LXD)


@pytest.fixture(scope="session")
def contract_incus() -> Iterator[tuple[House, Lxd]]:
    yield from _house(INCUS)


@pytest.fixture(params=[*FORMS, "joined", "lxd", "incus"])
def ground(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ground]:
    if request.param in FORMS:
        with simulated_ground(request.param, tmp_path) as found:
            yield found
    elif request.param == "joined":
        with joined_ground(tmp_path) as found:
            yield found
    else:
        house, driver = request.getfixturevalue(f"contract_{request.param}")
        with lxd_ground(house, driver, request.param) as found:
            yield found
