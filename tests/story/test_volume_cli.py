"""`tera volume` as users type it, on simulated hosts."""

from collections.abc import Iterator

import pytest
from tests.story.cloud import Cloud, running


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    with running(tmp_path_factory.mktemp("volumes") / "home") as cloud:
        yield cloud


def test_volume_outlives_its_instance(cloud: Cloud) -> None:
    cloud.ok("volume", "create", "disk", "--size", "10GB")
    cloud.ok("launch", "--name", "first", "--volume", "disk:/mnt/disk", "--wait")
    shown = cloud.ok("volume", "show", "disk", "--json").json
    assert (shown["state"], shown["instance"], shown["path"]) == ("attached", "first", "/mnt/disk")
    cloud.ok("exec", "first", "--", "tee", "/mnt/disk/kept")
    cloud.ok("volume", "snapshot", "disk", "before")
    assert "before (ready" in cloud.ok("volume", "show", "disk").out
    assert "Detach it first" in cloud.fails("volume", "delete", "disk", "--yes").err
    cloud.ok("delete", "first", "--yes", "--wait")
    cloud.ok("volume", "detach", "disk")  # waits until the engine has freed it
    assert "There is no snapshot `befor`" in cloud.fails("volume", "restore", "disk", "befor").err
    cloud.ok("volume", "restore", "disk", "before", "--yes")
    cloud.ok("launch", "--name", "second", "--volume", "disk", "--wait")
    cloud.ok("exec", "second", "--", "cat", "/volumes/disk/kept")
    cloud.ok("volume", "detach", "disk")
    cloud.ok("volume", "attach", "disk", "second", "--path", "/mnt/x")
    cloud.ok("volume", "detach", "disk")
    cloud.ok("volume", "resize", "disk", "--size", "20GB")
    cloud.ok("volume", "snapshot", "disk", "before", "--delete")
    assert cloud.ok("volume", "show", "disk", "--json").json["snapshots"] == []
    narrow = cloud.run("volume", "list", columns=60)
    assert all(len(line) <= 60 for line in narrow.out.splitlines())
    cloud.ok("volume", "delete", "disk", "--yes")


def test_volume_is_copied_if_asked(cloud: Cloud) -> None:
    made = cloud.ok("volume", "create", "safe", "--size", "10GB", "--copied", "--json").json
    assert (made["copied"], made["copies"]) == (True, [])
    assert "to another host, not yet" in cloud.ok("volume", "show", "safe").out
    assert "is not lost" in cloud.fails("volume", "recover", "safe", "--yes").err
    assert "needs confirmation" in cloud.fails("volume", "recover", "safe").err
    assert cloud.ok("volume", "copy", "safe", "--stop", "--json").json["copied"] is False
    assert "copied to another host" in cloud.ok("volume", "copy", "safe").err
    cloud.ok("volume", "delete", "safe", "--yes")


def test_bad_words_get_one_sentence(cloud: Cloud) -> None:
    for words, part in (
        (("volume", "create", "Bad Name", "--size", "10GB"), "is not a valid name for a volume"),
        (("volume", "create", "x", "--size", "ten"), "ten"),
        (("volume", "create", "x", "--size", "1MB"), "cannot have"),
        (("volume", "attach", "nothing", "nobody"), "volume"),
        (("launch", "--volume", "nothing"), "volume"),
    ):
        assert part in cloud.fails(*words).err
