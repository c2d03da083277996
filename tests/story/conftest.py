"""Fixtures: a user with a home, a new user, and a tenant of a cloud."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.story.cloud import Cloud, running
from tests.story.tera import Tera
from tests.unit.offer.catalogs import own
from tests.unit.offer.web import Web, web_server


@pytest.fixture(scope="session")
def used_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home as the first command leaves it."""
    home = tmp_path_factory.mktemp("used") / "home"
    Tera(home).ok("offers", "--limit", "1")
    return home


@pytest.fixture
def tera(tmp_path: Path, used_home: Path) -> Tera:
    shutil.copytree(used_home, tmp_path / "home")
    return Tera(tmp_path / "home")


@pytest.fixture(scope="session")
def owned_home(tmp_path_factory: pytest.TempPathFactory, used_home: Path) -> Path:
    """A home into which two prices, 1 and 2 dollars, were imported under the name `mine`."""
    folder = tmp_path_factory.mktemp("owned")
    shutil.copytree(used_home, folder / "home")
    file = own(folder / "prices.csv", [{"instance_type": f"box{i}", "price": i} for i in (1, 2)])
    Tera(folder / "home").ok("offers", "import", "mine", file, "--as-of", "2026-01-01")
    return folder / "home"


@pytest.fixture
def owner(tmp_path: Path, owned_home: Path) -> Tera:
    """A user who has imported prices."""
    shutil.copytree(owned_home, tmp_path / "home")
    return Tera(tmp_path / "home")


@pytest.fixture
def newcomer(tmp_path: Path) -> Tera:
    """A user whose home does not exist yet."""
    return Tera(tmp_path / "share" / "home")


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    """An installation with the simulated engine, for all tests of a module."""
    with running(tmp_path_factory.mktemp("cloud") / "home") as cloud:
        yield cloud


@pytest.fixture
def web() -> Iterator[Web]:
    with web_server() as web:
        yield web
