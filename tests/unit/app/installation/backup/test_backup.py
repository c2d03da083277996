"""A backup is complete or refused. An interrupted restore leaves the old installation or the new one."""

import os
import random
import signal
import stat
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from tests.upgrade.installations import OPERATOR_KEY, old_installation, rows

from teraflock.app.installation.backup.archive import MANIFEST, Manifest, Writer, opened
from teraflock.app.installation.backup.create import create
from teraflock.app.installation.backup.restore import restore, settings_here
from teraflock.app.installation.backup.unfinished import finish_interrupted
from teraflock.app.installation.places import Places
from teraflock.base.clock import SystemClock
from teraflock.base.errors import BrokenSource, Conflict, NotFound, Refused, TeraflockError
from teraflock.storage.open import open_database

CLOCK = SystemClock()


def ignore_progress(_: str) -> None:
    pass


@pytest.fixture(scope="module")
def backup(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("backup")
    create(old_installation(folder / "home"), folder / "file", CLOCK, ignore_progress)
    return folder / "file"


def test_a_backup_is_private_and_describes_its_content(backup: Path) -> None:
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    with opened(backup) as reader:
        reader.check()
        manifest = reader.manifest
    assert (manifest.organisations, manifest.instances, manifest.engine) == (3, 3, "simulated")
    assert set(manifest.parts) == {"database.jsonl", "settings.toml", "operator.key"}
    assert any("disks" in each for each in manifest.not_included)
    assert any("tools" in each for each in manifest.not_included), "the engine alone has this image"


def test_create_refuses_an_existing_file_and_a_missing_installation(backup: Path, tmp_path: Path) -> None:
    places = old_installation(tmp_path / "home")
    with pytest.raises(Conflict, match="already"):
        create(places, backup, CLOCK, ignore_progress)
    with pytest.raises(NotFound, match="no installation"):
        create(Places(tmp_path / "nothing"), tmp_path / "file", CLOCK, ignore_progress)
    with pytest.raises(Refused, match="no disks"):
        create(places, tmp_path / "file", CLOCK, ignore_progress, with_disks=True)
    assert not (tmp_path / "file").exists()


def test_a_restore_over_an_installation_needs_replace(backup: Path, tmp_path: Path) -> None:
    places = old_installation(tmp_path / "home")
    open_database(str(places.cloud / "cloud.db"), CLOCK).close()
    before = sorted(path.name for path in places.cloud.rglob("*"))
    with pytest.raises(Refused, match="already"):
        restore(places, backup, CLOCK, ignore_progress)
    assert sorted(path.name for path in places.cloud.rglob("*")) == before
    places.settings.write_text('engine = "simulated"\n')
    done = restore(places, backup, CLOCK, ignore_progress, replace=True)
    assert Path(done.replaced, "settings.toml").read_text() == 'engine = "simulated"\n'
    assert "V100" in places.settings.read_text()


@pytest.mark.parametrize("seed", range(60))
def test_a_damaged_backup_is_refused_in_one_sentence(backup: Path, tmp_path: Path, seed: int) -> None:
    """A truncated or changed backup is never restored, and never causes a traceback."""
    chance = random.Random(seed)
    content = bytearray(backup.read_bytes())
    if seed % 3 == 0:
        del content[chance.randrange(len(content)) :]
    else:
        at = chance.randrange(len(content))
        content[at] ^= chance.randrange(1, 256)
    broken = tmp_path / "broken"
    broken.write_bytes(content)
    places = Places(tmp_path / "home")
    try:
        with opened(broken) as reader:
            reader.check()
            whole = {name: reader.content(name) for name in reader.manifest.parts}
    except TeraflockError:
        with pytest.raises(TeraflockError) as refused:
            restore(places, broken, CLOCK, ignore_progress)
        assert "\n" not in refused.value.sentence
        assert not (places.cloud / "cloud.db").exists()
    else:  # the changed bytes are in a part of the ZIP without meaning
        with opened(backup) as reader:
            assert whole == {name: reader.content(name) for name in reader.manifest.parts}


def changed(backup: Path, target: Path, **changes: object) -> Path:
    """The backup with a changed manifest."""
    with zipfile.ZipFile(backup) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name == MANIFEST:
                content = msgspec.json.encode({**msgspec.json.decode(content), **changes})
            new.writestr(name, content)
    return target


def test_a_newer_backup_is_refused_in_one_sentence(backup: Path, tmp_path: Path) -> None:
    for changes in ({"format": 2}, {"schema": 9999}):
        newer = changed(backup, tmp_path / "newer", **changes)
        with pytest.raises(Refused, match="newer version of Teraflock"):
            restore(Places(tmp_path / "home"), newer, CLOCK, ignore_progress)
    other = changed(backup, tmp_path / "other", schema_checksums=["x"] * 8)
    with pytest.raises(Refused, match="different tables"):
        restore(Places(tmp_path / "home"), other, CLOCK, ignore_progress)
    no_backup = tmp_path / "text"
    no_backup.write_text("hello")
    with pytest.raises(BrokenSource, match="not a backup"):
        restore(Places(tmp_path / "home"), no_backup, CLOCK, ignore_progress)


DIES = """
import os, signal, sys
from pathlib import Path
from teraflock.app.installation.backup.restore import restore
from teraflock.app.installation.places import Places
from teraflock.base.clock import SystemClock
home, file, point = sys.argv[1:]
def reach(here):
    if here == point:
        os.kill(os.getpid(), signal.SIGKILL)
restore(Places(Path(home)), Path(file), SystemClock(), lambda _: None, replace=True, reach=reach)
"""
POINTS = ["staged", "loaded", "noted", "moved settings.toml", "moved operator.key", "moved cloud.db"]


@pytest.mark.parametrize("point", POINTS)
def test_a_killed_restore_leaves_the_old_or_the_new_installation(
    backup: Path, tmp_path: Path, point: str
) -> None:
    places = old_installation(tmp_path / "home")
    open_database(str(places.cloud / "cloud.db"), CLOCK).close()
    places.settings.write_text('engine = "simulated"\n')
    places.operator_key.write_text("old\n")
    died = subprocess.run([sys.executable, "-c", DIES, str(places.home), str(backup), point], check=False)
    assert died.returncode == -signal.SIGKILL
    is_old = point in ("staged", "loaded")
    if is_old:
        assert places.operator_key.read_text() == "old\n"
        assert rows(places.cloud / "cloud.db", "instance")[0]
    finish_interrupted(places)
    assert not (places.cloud / "restoring").exists()
    assert not (places.cloud / "restore.json").exists()
    expected = ("old\n", 'engine = "simulated"\n') if is_old else (f"{OPERATOR_KEY}\n", None)
    assert places.operator_key.read_text() == expected[0]
    if is_old:
        assert places.settings.read_text() == expected[1]
    else:
        assert "V100" in places.settings.read_text()
    phases = [row for row in rows(places.cloud / "cloud.db", "instance") if "away" in row]
    assert bool(phases) != is_old, "a restored instance is away until the loops have found it"
    database = open_database(str(places.cloud / "cloud.db"), CLOCK)
    with database.read() as tx:
        assert tx.one("SELECT COUNT(*) FROM organisation") == (3,)
    database.close()


def test_a_killed_backup_leaves_no_file(tmp_path: Path) -> None:
    places = old_installation(tmp_path / "home")
    script = (
        "import os, signal, sys\nfrom pathlib import Path\n"
        "from teraflock.app.installation.backup import archive\n"
        "from teraflock.app.installation.backup.create import create\n"
        "from teraflock.app.installation.places import Places\nfrom teraflock.base.clock import SystemClock\n"
        "archive.Writer.finish = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
        "create(Places(Path(sys.argv[1])), Path(sys.argv[2]), SystemClock(), lambda _: None)\n"
    )
    target = tmp_path / "file"
    done = subprocess.run([sys.executable, "-c", script, str(places.home), str(target)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert not target.exists()
    create(places, target, CLOCK, ignore_progress)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "home"], "and no partial file"


def test_a_restore_uses_the_engine_folder_of_this_home(backup: Path, tmp_path: Path) -> None:
    with opened(backup) as reader:
        manifest = reader.manifest
    text = 'engine = "lxd"\nlxd_socket = "/old/unix.socket"\ndatabase = "x"\n'
    ours = msgspec.structs.replace(manifest, settings=text, engine_is_ours=True)
    places = Places(tmp_path)
    assert settings_here(ours, places, "") == (
        f'engine = "lxd"\ndatabase = "x"\nlxd_socket = "{places.lxd}/unix.socket"\n'
    )
    foreign = msgspec.structs.replace(ours, engine_is_ours=False)
    assert settings_here(foreign, places, "") == text
    assert 'database = "postgresql://a/b"' in settings_here(foreign, places, "postgresql://a/b")
    assert "database" not in settings_here(foreign, places, "sqlite")
    assert os.sep in str(places.lxd)


def test_files_of_runs_and_data_are_restored(tmp_path: Path) -> None:
    places = old_installation(tmp_path / "home")
    kept = {
        "runs/runs/run_1/outputs.tar": b"outputs",
        "runs/runs/run_1/log": b"",
        "datasets/dat_1/manifest.json": b"{}",
        "datasets/dat_1/ab/abcd": bytes(3_000_000),
    }
    for name, content in {
        **kept,
        "runs/uploads/prj/abc.part": b"half",
        "datasets/dat_1/x.new": b"half",
    }.items():
        (places.cloud / name).parent.mkdir(parents=True, exist_ok=True)
        (places.cloud / name).write_bytes(content)
    (places.cloud / "runs" / "link").symlink_to("/etc/passwd")
    create(places, tmp_path / "file", CLOCK, ignore_progress)
    for home in ("other", "home", "home"):  # a new home, then twice over an existing one
        there = Places(tmp_path / home)
        restore(there, tmp_path / "file", CLOCK, ignore_progress, replace=home == "home")
        found = {
            path.relative_to(there.cloud).as_posix(): path.read_bytes()
            for folder in ("runs", "datasets")
            for path in (there.cloud / folder).rglob("*")
            if path.is_file()
        }
        assert found == kept


@pytest.mark.parametrize("name", ["files/../../escape", "files/settings.toml", "files//etc/x"])
def test_file_outside_its_folder_is_refused(tmp_path: Path, name: str) -> None:
    places = old_installation(tmp_path / "home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Writer, "finish", _with_part(name))
        create(places, tmp_path / "file", CLOCK, ignore_progress)
    with pytest.raises(BrokenSource):
        restore(Places(tmp_path / "other"), tmp_path / "file", CLOCK, ignore_progress)
    assert not (tmp_path / "escape").exists()


def _with_part(name: str) -> Callable[[Writer, Manifest], None]:
    finish = Writer.finish

    def finished(writer: Writer, manifest: Manifest) -> None:
        writer.add(name, [b"hostile"])
        finish(writer, msgspec.structs.replace(manifest, parts=dict(writer.parts)))

    return finished
