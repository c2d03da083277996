"""Full and read-only disks, broken files, interruptions: one clear error, no lost or partial data."""

import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.story.paused_import import paused_import
from tests.story.tera import SECONDS_MAX, Tera, checked, finished
from tests.unit.offer.catalogs import own
from tests.unit.offer.web import Web, body
from tests.unit.storage.disks import small_disk, unwritable

MIB = 1 << 20


def catalog(file: Path, rows: int) -> Path:
    return own(file, [{"instance_type": f"box{i}", "price": str(1 + i)} for i in range(rows)])


def mine(tera: Tera) -> list[float]:
    return [offer["price_usd_per_hour"] for offer in tera.offers("--source", "mine")]


def sound(home: Path) -> bool:
    with sqlite3.connect(home / "tera.db") as connection:
        found = connection.execute("PRAGMA integrity_check").fetchall()
    connection.close()
    return found == [("ok",)]


# --- interrupted ---------------------------------------------------------------------------------------------------


def test_ctrl_c_stops_an_import_without_a_trace(owner: Tera, tmp_path: Path) -> None:
    folder = tmp_path / "new"
    with paused_import(owner, folder, "5") as paused:
        paused.write(10)
        paused.process.send_signal(signal.SIGINT)
        with pytest.raises(BrokenPipeError):
            paused.write(200_000)
        paused.end()
        done = finished(paused.process)
    assert (done.code, done.out) == (130, "")
    assert "error: Interrupted" in done.err
    assert mine(owner) == [1, 2]
    assert sound(owner.home)


def test_kill_9_during_an_import_keeps_the_old_offers(owner: Tera, tmp_path: Path) -> None:
    everything = owner.offers("--all")
    folder = tmp_path / "new"
    with paused_import(owner, folder, "5") as paused:
        paused.write(10)
        paused.process.kill()
        paused.process.wait()
    assert owner.offers("--all") == everything
    assert sound(owner.home)
    shutil.rmtree(folder)
    owner.ok("offers", "import", "mine", catalog(tmp_path / "again.csv", 3))
    assert mine(owner) == [1, 2, 3]


def test_reads_during_an_import_see_the_old_catalog(owner: Tera, tmp_path: Path) -> None:
    with paused_import(owner, tmp_path / "new", "5") as paused:
        assert mine(owner) == [1, 2]
        paused.write(1)
        paused.end()
        assert finished(paused.process).code == 0
    assert len(owner.offers("--source", "mine", "--all")) == 2501


def test_two_concurrent_imports_leave_one_complete_catalog(owner: Tera, tmp_path: Path) -> None:
    with paused_import(owner, tmp_path / "new", "5") as paused:
        other = owner.start("offers", "import", "mine", catalog(tmp_path / "other.csv", 3), "--yes")
        paused.write(1)
        paused.end()
        assert finished(paused.process).code == 0
        assert finished(other).code == 0
    assert len(owner.offers("--source", "mine", "--all")) in (3, 2501)
    sources = {source["name"]: source for source in owner.ok("offers", "sources", "--json").json}
    assert sources["mine"]["offers"] == len(owner.offers("--source", "mine", "--all"))
    assert sound(owner.home)


def test_concurrent_first_commands(newcomer: Tera) -> None:
    processes = [newcomer.start("offers", "--gpu", "M40", "--json") for _ in range(4)]
    answers = [finished(process) for process in processes]
    assert [answer.code for answer in answers] == [0] * 4
    assert len({answer.out for answer in answers}) == 1
    assert len(newcomer.offers("--all")) == 136
    assert sound(newcomer.home)


# --- disks ---------------------------------------------------------------------------------------------------------


def test_full_disk_is_reported_and_nothing_is_lost(tmp_path: Path, used_home: Path, web: Web) -> None:
    large = catalog(tmp_path / "large.csv", 12_000)
    home = tmp_path / "disk"
    home.mkdir()
    with small_disk(home, 2 * MIB):
        shutil.copytree(used_home, home, dirs_exist_ok=True)
        tera = Tera(home)
        tera.ok("offers", "import", "mine", catalog(tmp_path / "first.csv", 2))
        before = tera.offers("--all")
        done = tera.run("offers", "import", "mine", large)
        assert (done.code, done.out) == (1, "")
        assert done.err.startswith("error: The disk is full")
        assert done.hint.startswith("Free some space")
        web.pages["/large.csv"] = body(b"x" * 3 * MIB)
        fetched = tera.run("offers", "refresh", "mine", "--url", web.at("/large.csv"))
        assert fetched.code == 1
        assert fetched.err.startswith("error: The disk is full")
        assert tera.offers("--all") == before
        assert sorted(path.name for path in home.iterdir() if not path.name.startswith("tera.db")) == []
        assert sound(home)


def test_write_error_is_reported_and_nothing_is_lost(owner: Tera, tmp_path: Path) -> None:
    large = catalog(tmp_path / "large.csv", 12_000)
    room = (owner.home / "tera.db").stat().st_size + 100_000
    done = owner.run(
        "offers",
        "import",
        "mine",
        large,
        before=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (room, room)),
    )
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("error: ")
    assert "space" in done.hint
    assert mine(owner) == [1, 2]
    assert sound(owner.home)


def test_read_only_home_can_be_read(owner: Tera, tmp_path: Path) -> None:
    file = catalog(tmp_path / "new.csv", 3)
    rates = tmp_path / "rates.csv"
    rates.write_text("date,currency,per_usd,source\n2020-01-01,CNY,7,x\n")
    with unwritable(owner.home):
        assert mine(owner) == [1, 2]
        for words in (
            ("offers", "import", "mine", file),
            ("offers", "refresh", "mine", "--url", "http://127.0.0.1:1/x.csv"),
            ("rates", "import", rates),
        ):
            done = owner.run(*words)
            assert (done.code, done.out) == (1, "")
            assert str(owner.home) in done.err
    assert mine(owner) == [1, 2]


def test_shipped_offers_work_without_a_home(tmp_path: Path) -> None:
    shut = tmp_path / "shut"
    shut.mkdir()
    with unwritable(shut):
        tera = Tera(shut / "home")
        assert len(tera.offers("--all")) == 136
        done = tera.run("offers", "import", "mine", catalog(tmp_path / "new.csv", 3))
        assert (done.code, done.out) == (1, "")
        assert str(shut) in done.err
        assert "TERA_HOME" in done.hint


def test_a_home_that_is_a_file(tmp_path: Path) -> None:
    file = tmp_path / "home"
    file.write_text("mine")
    tera = Tera(file)
    assert len(tera.offers("--all")) == 136
    for words in (
        ("offers", "import", "mine", catalog(tmp_path / "new.csv", 3)),
        ("offers", "refresh", "mine", "--url", "http://127.0.0.1:1/x.csv"),
    ):
        done = tera.run(*words)
        assert (done.code, done.out) == (1, "")
        assert "TERA_HOME" in done.hint
    assert file.read_text() == "mine"


# --- databases -----------------------------------------------------------------------------------------------------


def test_newer_database_is_not_changed(owner: Tera) -> None:
    with sqlite3.connect(owner.home / "tera.db") as connection:
        connection.execute("INSERT INTO schema_migration VALUES (99, 'later', 'x', '2030-01-01')")
    connection.close()
    before = (owner.home / "tera.db").read_bytes()
    for words in (("offers",), ("offers", "import", "mine", "x.csv"), ("gpus", "T4")):
        done = owner.run(*words)
        assert (done.code, done.out) == (1, "")
        assert "was written by a newer version of Teraflock (schema 99" in done.err
        assert "Update Teraflock" in done.hint
    assert (owner.home / "tera.db").read_bytes() == before


@pytest.mark.parametrize("damage", ["no database", "pages", "cut", "folder"])
def test_damaged_database_is_reported_and_not_changed(owner: Tera, damage: str) -> None:
    file = owner.home / "tera.db"
    whole = file.read_bytes()
    if damage == "no database":
        file.write_bytes(b"Dear diary, " * 1000)
    elif damage == "pages":
        file.write_bytes(whole[:4096] + b"\xaa" * (len(whole) - 4096))
    elif damage == "cut":
        file.write_bytes(whole[: len(whole) // 3])
    else:
        file.unlink()
        file.mkdir()
    before = file.read_bytes() if file.is_file() else b""
    done = owner.run("offers", "--all")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("error: ")
    assert str(file) in done.err
    assert done.hint
    assert (file.read_bytes() if file.is_file() else b"") == before


# --- readers that go away ------------------------------------------------------------------------------------------


def test_closed_pipe_is_not_an_error(owner: Tera, tmp_path: Path) -> None:
    """`tera offers | head -1`, with more to write than a pipe holds."""
    owner.ok("offers", "import", "mine", catalog(tmp_path / "large.csv", 1500))
    for words in (["offers", "--all"], ["offers", "--all", "--json"], ["gpus"], ["--help"]):
        process = owner.start(*words)
        assert process.stdout
        assert process.stderr
        assert process.stdout.readline()
        process.stdout.close()
        err = process.stderr.read()
        process.stderr.close()
        assert checked(process.wait(SECONDS_MAX), b"", err).code == 0
        assert "error" not in err.decode()


def test_missing_pipe_reader_is_not_an_error(owner: Tera) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    for words in (("offers",), ("offers", "--csv"), ("gpus",), ("--help",)):
        done = subprocess.run(
            owner.command(*words),
            env=owner.environment(100),
            stdout=writing,
            stderr=subprocess.PIPE,
            check=False,
        )
        assert checked(done.returncode, b"", done.stderr).code == 0
    os.close(writing)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("words", [("offers",), ("offers", "--json"), ("gpus",)], ids=" ".join)
def test_full_disk_of_redirected_output_is_reported(owner: Tera, words: tuple[str, ...]) -> None:
    with open("/dev/full", "wb") as full:  # noqa: PTH123
        done = subprocess.run(
            owner.command(*words),
            env=owner.environment(100),
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
    told = checked(done.returncode, b"", done.stderr)
    assert told.code == 1
    assert "error: No space left on device" in told.err


@pytest.mark.parametrize("buffering", ["", "1"], ids=["buffered", "unbuffered"])
def test_a_disk_that_takes_only_a_part_of_the_output_is_reported(
    owner: Tera, tmp_path: Path, buffering: str
) -> None:
    """Without a buffer, Python forgets the part that was not written, and reports success."""

    def allow_little() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

    with (tmp_path / "models.json").open("wb") as small:
        done = subprocess.run(
            owner.command("estimate", "--models", "--json"),
            env={**owner.environment(100), "PYTHONUNBUFFERED": buffering},
            stdout=small,
            stderr=subprocess.PIPE,
            preexec_fn=allow_little,
            check=False,
        )
    assert checked(done.returncode, b"", done.stderr).code == 1
    assert b"error: File too large" in done.stderr


def test_unexpected_error_is_one_sentence(owner: Tera) -> None:
    broken = (
        "import sys, teraflock.offer.service as s, teraflock.cli.main as m\n"
        "def fault(*_, **__): raise ZeroDivisionError\n"
        "s.OfferService.listing = fault\n"
        "sys.argv = ['tera', 'offers']\n"
        "m.run()\n"
    )

    def run(**more: str) -> Any:
        environment = owner.environment(100) | more
        return subprocess.run(
            [sys.executable, "-c", broken], env=environment, capture_output=True, text=True, check=False
        )

    done = run()
    assert done.returncode == 70
    assert done.stderr.startswith("error: Unexpected error in Teraflock: ZeroDivisionError\n\nhint: ")
    assert "Traceback" not in done.stderr
    assert "Traceback" in run(TERA_DEBUG="1").stderr
