"""Versions that the server installs on a host: only whole packages that run there are used."""

import io
import tarfile
from hashlib import sha256
from pathlib import Path

import pytest

from teraflock import __version__
from teraflock.app.joining.config import HostConfig, HostPlaces, write_config
from teraflock.app.joining.packing import package
from teraflock.app.joining.releases import INSTALLED, Releases
from teraflock.base.errors import TeraflockError
from teraflock.drivers.joined.frames import Upgrade
from teraflock.instance.engine_errors import EngineBusy


@pytest.fixture
def places(tmp_path: Path) -> HostPlaces:
    places = HostPlaces(tmp_path)
    config = HostConfig(
        name="lab2", address="192.0.2.7", listen="127.0.0.1:1", mark="m4rk", engine="simulated", options={},
        server="192.0.2.1:8733", certificate="", authority="",
    )  # fmt: skip
    write_config(places, config)
    return places


def packed(files: dict[str, str]) -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as archive:
        for name, text in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(text)
            archive.addfile(info, io.BytesIO(text.encode()))
    return content.getvalue()


def request(content: bytes, version: str = "9.9") -> Upgrade:
    return Upgrade(version=version, digest=sha256(content).hexdigest())


OUTSIDE = packed({"../out": ""})


@pytest.mark.parametrize(
    ("asked", "content", "problem"),
    [
        (request(b"other"), b"content", "did not arrive complete"),
        (request(b"content", version="../../etc"), b"content", "did not arrive complete"),
        (request(b"content"), b"content", "cannot unpack the package"),
        (request(OUTSIDE), OUTSIDE, "cannot unpack the package"),
    ],
    ids=["other-digest", "version-is-a-path", "not-an-archive", "outside-the-folder"],
)
def test_a_damaged_package_is_refused(
    places: HostPlaces, asked: Upgrade, content: bytes, problem: str
) -> None:
    releases = Releases(places, {})
    with pytest.raises(TeraflockError, match=problem):
        releases.install(asked, content)
    assert releases.newer() is None
    assert not (places.folder.parent / "out").exists()


def test_a_version_that_does_not_run_here_is_refused(places: HostPlaces) -> None:
    releases = Releases(places, {})
    content = packed({"teraflock/__init__.py": "import missing_package"})
    with pytest.raises(
        TeraflockError, match="does not run on this host: .*No module named 'missing_package'"
    ):
        releases.install(request(content), content)
    assert [path.name for path in releases.folder.iterdir()] == []


def test_an_installed_release_runs_until_another_version_is_installed_by_hand(places: HostPlaces) -> None:
    content = package().content
    assert package().content == content, "the same files always give the same package"
    releases = Releases(places, {"PYTHONPATH": "/somewhere", INSTALLED: "0.0.1"})
    (releases.folder / "old").mkdir(parents=True)
    releases.install(request(content, __version__), content)
    found = releases.newer()
    assert found is not None
    assert {path.name for path in releases.folder.iterdir()} == {found.name, "current.json"}
    environment = releases.environment(found)
    assert (environment["PYTHONPATH"], environment[INSTALLED]) == (f"{found}:/somewhere", "0.0.1")
    assert Releases(places, environment).environment(found) == environment, "paths do not pile up"
    assert Releases(places, {INSTALLED: "0.0.2"}).newer() is None, "somebody installed another version"
    (releases.folder / "current.json").write_text("{")
    assert releases.newer() is None


def test_two_upgrades_at_once_are_refused(places: HostPlaces) -> None:
    releases = Releases(places, {})
    releases._lock.acquire()
    with pytest.raises(EngineBusy):
        releases.install(request(b""), b"")
