"""A user with a home, and one who has just come."""

import shutil
from pathlib import Path

import pytest
from tests.story.tera import Tera


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


@pytest.fixture
def newcomer(tmp_path: Path) -> Tera:
    """Someone whose home does not exist yet."""
    return Tera(tmp_path / "share" / "home")
