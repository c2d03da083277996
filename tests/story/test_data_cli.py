"""`tera data` as users type it, on simulated hosts."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.story.cloud import Cloud, running

TEXT = b"hello from the dataset\n"


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    with running(tmp_path_factory.mktemp("data") / "home") as cloud:
        yield cloud


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "corpus" / "deep").mkdir(parents=True)
    (tmp_path / "corpus" / "a.txt").write_bytes(TEXT)
    (tmp_path / "corpus" / "empty").write_bytes(b"")
    (tmp_path / "corpus" / "deep" / "b.bin").write_bytes(bytes(range(256)) * 70_000)  # three chunks
    (tmp_path / "corpus" / "link").symlink_to("/etc/passwd")
    return tmp_path / "corpus"


def test_data_is_pushed_once_and_read_by_instances_and_runs(cloud: Cloud, folder: Path) -> None:
    pushed = cloud.ok("data", "push", "corpus", folder)
    assert "`corpus` is ready" in pushed.err
    assert "Left out 1 link" in pushed.err
    shown = cloud.ok("data", "show", "corpus", "--json").json
    assert (shown["state"], shown["files"], shown["size_bytes"]) == ("ready", 3, 17_920_023)
    again = cloud.ok("data", "push", "corpus", folder, "--json").json
    assert again["id"] == shown["id"], "the same content is not stored twice"
    assert "already, as `corpus`" in cloud.fails("data", "push", "other", folder).err
    (folder / "more").write_bytes(b"more")
    assert "other data with the name" in cloud.fails("data", "push", "corpus", folder).err
    done = cloud.ok("run", "--yes", "--cpu-only", "--data", "corpus", "--", "cat", "/data/corpus/a.txt")
    assert done.out.encode() == TEXT
    cloud.ok("launch", "--name", "reader", "--data", "corpus", "--wait")
    assert "TERA_DATA=/data" in cloud.ok("exec", "reader", "--", "printenv").out
    assert cloud.ok("exec", "reader", "--", "cat", "/data/corpus/a.txt").out.encode() == TEXT
    assert "/data/corpus" in cloud.ok("show", "reader").out
    assert "in use by 1 instance" in cloud.fails("data", "delete", "corpus", "--yes").err
    cloud.ok("delete", "reader", "--yes", "--wait")
    cloud.ok("data", "delete", "corpus", "--yes")
    while cloud.ok("data", "list", "--json").json:
        time.sleep(0.1)
    assert not list((cloud.home / "cloud" / "datasets").iterdir())


def test_interrupted_push_continues(cloud: Cloud, folder: Path) -> None:
    client = cloud.start("data", "push", "broken", folder)
    kept = cloud.home / "cloud" / "datasets"
    while not list(kept.glob("*/??/*")) and client.poll() is None:
        time.sleep(0.001)
    os.kill(client.pid, signal.SIGKILL)
    client.communicate()
    cloud.ok("data", "push", "broken", folder)
    assert cloud.ok("data", "show", "broken", "--json").json["state"] == "ready"


def test_bad_words_get_one_sentence(cloud: Cloud, folder: Path) -> None:
    for words, part in (
        (("data", "push", "Bad Name", folder), "is not a valid name for a dataset"),
        (("data", "push", "x", folder / "nowhere"), "There is no file or folder"),
        (("data", "show", "nothing"), "dataset"),
        (("run", "--yes", "--data", "nothing", "--", "true"), "dataset"),
    ):
        failed = cloud.fails(*words)
        assert part in failed.err
    narrow = cloud.run("data", "list", columns=60)
    assert all(len(line) <= 60 for line in narrow.out.splitlines())
