"""A console with the tenants of tests/api. It is built once; each test that changes something gets a copy."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.api.asking import Tenants, furnish
from tests.console.browser import SHARED
from tests.console.visiting import ConsoleServer, copied_console


@pytest.fixture(scope="session", autouse=True)
def _closed_browser() -> Iterator[None]:
    yield
    SHARED.close()


@pytest.fixture(scope="session")
def furnished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Tenants]:
    home = tmp_path_factory.mktemp("console") / "home"
    return home, furnish(home)


@pytest.fixture(scope="session")
def tenants(furnished: tuple[Path, Tenants]) -> Tenants:
    return furnished[1]


@pytest.fixture
def console(furnished: tuple[Path, Tenants], tmp_path: Path) -> Iterator[ConsoleServer]:
    server = copied_console(furnished[0], tmp_path / "server")
    yield server
    server.close()


@pytest.fixture(scope="module")
def unchanged(
    furnished: tuple[Path, Tenants], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ConsoleServer]:
    """One console for all requests that change nothing."""
    server = copied_console(furnished[0], tmp_path_factory.mktemp("read") / "server")
    yield server
    server.close()
