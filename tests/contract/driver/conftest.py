"""One suite for all engines. Real engines are tested if they are installed."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.contract.driver.grounds import Ground, Guest
from tests.contract.driver.joined_ground import joined_ground
from tests.contract.driver.lxd_ground import driver_in, lxd_ground
from tests.contract.driver.simulated_ground import FORMS, simulated_ground
from tests.engine.sandbox import NoSandbox, Sandbox

from teraflock.drivers.lxd import build
from teraflock.drivers.lxd.daemon import INCUS, LXD, Program
from teraflock.drivers.lxd.driver import Lxd
from teraflock.image import recipe


def _sandbox(program: Program) -> Iterator[tuple[Sandbox, Lxd]]:
    from tests.engine.conftest import IMAGES

    try:
        build.build(recipe.read("base"), IMAGES, created_at=1)
        sandbox = Sandbox(f"contract-{program.name}-", program)
    except NoSandbox as reason:
        pytest.skip(str(reason))
    except build.BuildFailed as reason:
        pytest.skip(f"the base image cannot be built here: {reason}")
    yield sandbox, driver_in(sandbox)
    sandbox.close()


@pytest.fixture(scope="session")
def contract_lxd() -> Iterator[tuple[Sandbox, Lxd]]:
    yield from _sandbox(LXD)


@pytest.fixture(scope="session")
def contract_incus() -> Iterator[tuple[Sandbox, Lxd]]:
    yield from _sandbox(INCUS)


ENGINES = (*FORMS, "joined", "lxd", "incus")
REAL = ("[lxd", "[incus")
FAST_ON_A_REAL_ENGINE = (
    "test_a_launch_ends_with_a_guest_that_answers",
    "test_files_outlive_an_instance_and_snapshots_bring_them_back",
    "test_guests_share_a_dataset_and_cannot_change_it",
    "test_programs_run_with_input_output_and_exit_code",
)
"""A guest costs seconds, and tests/engine starts many in the fast part, too."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        is_real = item.path.parent == Path(__file__).parent and any(word in item.name for word in REAL)
        if is_real and not item.name.startswith(FAST_ON_A_REAL_ENGINE):
            item.add_marker(pytest.mark.long("the contract once more, with real guests"))


@pytest.fixture(params=ENGINES)
def ground(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ground]:
    with _ground(request, tmp_path) as found:
        yield found


@pytest.fixture(params=ENGINES, scope="module")
def guest(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guest]:
    """For tests that leave it as it was."""
    with _ground(request, tmp_path_factory.mktemp("guest")) as found:
        yield Guest(found, found.up())


@contextmanager
def _ground(request: pytest.FixtureRequest, folder: Path) -> Iterator[Ground]:
    if request.param in FORMS:
        with simulated_ground(request.param, folder) as found:
            yield found
    elif request.param == "joined":
        with joined_ground(folder) as found:
            yield found
    else:
        sandbox, driver = request.getfixturevalue(f"contract_{request.param}")
        with lxd_ground(sandbox, driver, request.param) as found:
            yield found
