"""A server with data. It is built once; each test gets a copy."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.api.asking import ApiServer, Tenants, copied, furnish


@pytest.fixture(scope="session")
def furnished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Tenants]:
    home = tmp_path_factory.mktemp("api") / "home"
    return home, furnish(home)


@pytest.fixture
def tenants(furnished: tuple[Path, Tenants]) -> Tenants:
    return furnished[1]


@pytest.fixture
def server(furnished: tuple[Path, Tenants], tmp_path: Path) -> Iterator[ApiServer]:
    server = copied(furnished[0], tmp_path / "server")
    yield server
    server.close()
