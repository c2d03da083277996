"""An archive of a guest's files is a limited tar of regular files, whatever the guest reports."""

import io
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teraflock.base.errors import BadInput, NotFound, Refused
from teraflock.instance.archive import ENTRIES_MAX, OpenFile, archive, checked_path
from teraflock.instance.driver import FileKind, GuestFile
from teraflock.instance.engine_errors import EngineMissing

LINK = None
Tree = Mapping[str, "bytes | Tree | None"]


def opening(tree: Tree) -> OpenFile:
    @contextmanager
    def open_file(path: str) -> Iterator[GuestFile]:
        found: bytes | Tree | None = tree
        for part in path.strip("/").split("/") if path != "/" else ():
            if not isinstance(found, Mapping) or part not in found:
                raise EngineMissing("not there")
            found = found[part]
        if found is LINK:
            yield GuestFile(kind=FileKind.LINK)
        elif isinstance(found, bytes):
            yield GuestFile(kind=FileKind.FILE, size_bytes=len(found), content=iter((found[:3], found[3:])))
        else:
            yield GuestFile(kind=FileKind.FOLDER, mode=0o755, names=tuple(found))

    return open_file


def contents(stream: bytes) -> dict[str, bytes | None]:
    with tarfile.open(fileobj=io.BytesIO(stream)) as tar:
        found: dict[str, bytes | None] = {}
        for member in tar:
            assert member.isfile() or member.isdir()
            content = tar.extractfile(member)
            found[member.name] = content.read() if content else None
        return found


def flat(tree: Tree, at: str) -> dict[str, bytes | None]:
    found: dict[str, bytes | None] = {at: None}
    for name, each in tree.items():
        if isinstance(each, bytes):
            found[f"{at}/{name}"] = each
        elif each is not LINK:
            found |= flat(each, f"{at}/{name}")
    return found


NAMES = st.text(min_size=1, max_size=120).filter(
    lambda name: "/" not in name and "\0" not in name and name not in (".", "..") and name.isprintable()
)
TREES = st.recursive(
    st.binary(max_size=2000) | st.none(),
    lambda below: st.dictionaries(NAMES, below, max_size=4),
    max_leaves=8,
)


@given(st.dictionaries(NAMES, TREES, max_size=4))
def test_archive_has_all_files_and_folders_but_no_links(tree: Tree) -> None:
    pieces = list(archive(opening({"out": tree}), "/out"))
    assert all(pieces), "an empty piece would end the response"
    stream = b"".join(pieces)
    assert contents(stream) == flat(tree, "out")
    assert len(stream) % tarfile.BLOCKSIZE == 0


def test_archive_of_a_single_file() -> None:
    assert contents(b"".join(archive(opening({"a": {"b": b"content"}}), "/a/b"))) == {"b": b"content"}


def test_names_outside_the_folder_are_skipped() -> None:
    @contextmanager
    def hostile(path: str) -> Iterator[GuestFile]:
        if path == "/d":
            yield GuestFile(kind=FileKind.FOLDER, names=("..", ".", "", "a/b", "../../etc/passwd", "good"))
        else:
            assert path == "/d/good", "no other path is opened"
            yield GuestFile(kind=FileKind.FILE, size_bytes=1, content=iter((b"x",)))

    assert contents(b"".join(archive(hostile, "/d"))) == {"d": None, "d/good": b"x"}


@pytest.mark.parametrize("path", ["etc", "../etc", "/a/../b", "/..", ""])
def test_paths_that_are_not_absolute_are_refused(path: str) -> None:
    with pytest.raises(BadInput, match="is not an absolute path without"):
        next(archive(opening({}), path))


def test_second_leading_slash_is_ignored() -> None:
    assert checked_path("//etc//hostname") == "/etc/hostname"
    assert checked_path("//") == "/"


def test_missing_path_or_link_is_refused_before_the_first_byte() -> None:
    with pytest.raises(NotFound):
        next(archive(opening({}), "/x"))
    with pytest.raises(BadInput, match="is a link"):
        next(archive(opening({"x": LINK}), "/x"))


def test_a_file_that_is_too_large_is_refused_before_the_first_byte() -> None:
    with pytest.raises(Refused, match="more than 1 KB, the most"):
        next(archive(opening({"x": bytes(1025)}), "/x", bytes_max=1024))
    assert contents(b"".join(archive(opening({"x": bytes(1024)}), "/x", bytes_max=1024)))


def test_stream_ends_when_a_folder_is_too_large() -> None:
    with pytest.raises(Refused, match="more than 1 KB, the most"):
        list(archive(opening({"d": {"a": bytes(600), "b": bytes(600)}}), "/d", bytes_max=1024))
    with pytest.raises(Refused, match="more than 10,000 files, the most"):
        list(archive(opening({"d": {str(n): b"" for n in range(ENTRIES_MAX)}}), "/d"))


@pytest.mark.parametrize(("said", "content"), [(10, b"short"), (3, b"longer than it said")])
def test_file_has_the_length_of_its_header_or_the_stream_ends(said: int, content: bytes) -> None:
    @contextmanager
    def lying(path: str) -> Iterator[GuestFile]:
        yield GuestFile(kind=FileKind.FILE, size_bytes=said, content=iter((content,)))

    if said > len(content):
        with pytest.raises(Refused, match="shorter"):
            list(archive(lying, "/x"))
    else:
        assert contents(b"".join(archive(lying, "/x"))) == {"x": content[:said]}


def test_folder_that_contains_itself_ends() -> None:
    @contextmanager
    def endless(path: str) -> Iterator[GuestFile]:
        yield GuestFile(kind=FileKind.FOLDER, names=("again",))

    assert len(contents(b"".join(archive(endless, "/x")))) < 100


def test_paths_that_are_left_out_are_never_opened() -> None:
    opened_paths: list[str] = []
    tree = opening({"d": {"a": b"1", "pipe": b"2", "deep": {"socket": b"3", "b": b"4"}}})

    def noted(path: str) -> AbstractContextManager[GuestFile]:
        opened_paths.append(path)
        return tree(path)

    left_out = {"/d/pipe", "/d/deep/socket"}
    found = contents(b"".join(archive(noted, "/d", left_out=left_out)))
    assert {name for name, content in found.items() if content} == {"d/a", "d/deep/b"}
    assert not left_out.intersection(opened_paths)
