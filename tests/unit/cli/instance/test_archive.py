"""A hostile archive can only write plain files below the target."""

import io
import os
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from teraflock.base.errors import BadInput, Refused
from teraflock.cli.instance.archive import receive


def tar(*members: tuple[str, bytes, bytes | str]) -> Iterator[bytes]:
    """An archive of (name, type, content or link target), in pieces of uneven sizes."""
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w") as archive:
        for name, kind, content in members:
            info = tarfile.TarInfo(name)
            info.type, info.mode = kind, 0o4755
            if isinstance(content, str):
                info.linkname, content = content, b""
            info.size = len(content) if kind == tarfile.REGTYPE else 0
            archive.addfile(info, io.BytesIO(content))
    text = whole.getvalue()
    return iter([text[at : at + 777] for at in range(0, len(text), 777)])


FILE, FOLDER, LINK = tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE


def everything(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def test_file_is_named_as_by_cp(tmp_path: Path) -> None:
    receive(tar(("model", FILE, b"x" * 3000)), tmp_path, recursive=False)
    receive(tar(("model", FILE, b"y")), tmp_path / "other", recursive=False)
    assert (tmp_path / "model").read_bytes() == b"x" * 3000
    assert (tmp_path / "other").read_bytes() == b"y"
    assert (tmp_path / "model").stat().st_mode & 0o7000 == 0, "no set-user-id"


def test_folder_is_copied_with_its_contents(tmp_path: Path) -> None:
    members = (("out", FOLDER, b""), ("out/a", FILE, b"1"), ("out/b", FOLDER, b""), ("out/b/c", FILE, b"2"))
    with pytest.raises(BadInput, match="is a folder"):
        receive(tar(*members), tmp_path, recursive=False)
    receive(tar(*members), tmp_path, recursive=True)
    receive(tar(*members), tmp_path, recursive=True)  # again: files are replaced
    receive(tar(*members), tmp_path / "new", recursive=True)
    assert everything(tmp_path) == {"out", "out/a", "out/b", "out/b/c", "new", "new/a", "new/b", "new/b/c"}


@pytest.mark.parametrize(
    "name", ["../evil", "out/../../evil", "/evil", "out//evil", "out/./../evil", "..", "out/.."]
)
@pytest.mark.parametrize("kind", [FILE, FOLDER])
def test_names_cannot_leave_the_target(tmp_path: Path, name: str, kind: bytes) -> None:
    target = tmp_path / "target"
    target.mkdir()
    with pytest.raises(Refused, match="outside the target"):
        receive(tar(("out", FOLDER, b""), (name, kind, b"x")), target, recursive=True)
    assert everything(tmp_path) <= {"target", "target/out"}


def test_links_and_devices_are_skipped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target, outside = tmp_path / "target", tmp_path / "outside"
    target.mkdir()
    outside.mkdir()
    members = (
        ("out", FOLDER, b""),
        ("out/link", LINK, str(outside)),
        ("out/hard", tarfile.LNKTYPE, str(outside / "secret")),
        ("out/pipe", tarfile.FIFOTYPE, b""),
        ("out/good", FILE, b"x"),
    )
    receive(tar(*members), target, recursive=True)
    assert everything(target) == {"out", "out/good"}
    assert capsys.readouterr().err.count("Skipped") == 3
    with pytest.raises(OSError, match="link"):
        receive(tar(*members, ("out/link/evil", FILE, b"x")), target, recursive=True)
    assert everything(outside) == set()


def test_existing_links_are_not_followed(tmp_path: Path) -> None:
    target, outside = tmp_path / "target", tmp_path / "outside"
    (target / "out").mkdir(parents=True)
    outside.mkdir()
    (outside / "file").write_text("mine")
    (target / "out" / "folder").symlink_to(outside)
    (target / "out" / "file").symlink_to(outside / "file")
    with pytest.raises(Refused, match="is a link on this machine"):
        receive(tar(("out", FOLDER, b""), ("out/folder/evil", FILE, b"x")), target, recursive=True)
    receive(tar(("out", FOLDER, b""), ("out/file", FILE, b"theirs")), target, recursive=True)
    assert (outside / "file").read_text() == "mine"
    assert (target / "out" / "file").read_text() == "theirs"
    assert everything(outside) == {"file"}


def test_interrupted_copy_leaves_no_partial_file(tmp_path: Path) -> None:
    whole = b"".join(tar(("model", FILE, os.urandom(5000))))
    with pytest.raises(tarfile.ReadError):
        receive(iter([whole[:3000]]), tmp_path, recursive=False)
    assert everything(tmp_path) == set()
