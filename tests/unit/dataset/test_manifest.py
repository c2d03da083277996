"""Manifests of tenants are refused unless they are safe to unpack; every dataset survives the way to a tar."""

import io
import os
import tarfile
from hashlib import sha256
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from teraflock.base.errors import BadInput
from teraflock.cli import dataset_files
from teraflock.cli.dataset_files import LocalDataset
from teraflock.dataset import rules
from teraflock.dataset.model import DatasetManifest, ManifestChunk, ManifestFile
from teraflock.dataset.rules import checked, joined, manifest_from, tar_of

EMPTY = sha256(b"").hexdigest()


def manifest(*files: tuple[str, int], chunks: int | None = None) -> DatasetManifest:
    size = sum(each for _, each in files) if chunks is None else chunks
    return DatasetManifest(
        files=tuple(ManifestFile(name, each) for name, each in files),
        chunks=(ManifestChunk(EMPTY, size),) if size else (),
    )


@pytest.mark.parametrize(
    "path",
    ["", "/etc/passwd", "../up", "a/../../b", "a//b", "a/./b", ".", "..", "a/", "a\0b", "a\nb", "\x1b[2J",
     "x" * 256, "/".join(["d" * 100] * 11), "/".join("d" * 65), "\ud800"],
)  # fmt: skip
def test_dangerous_path_is_refused(path: str) -> None:
    with pytest.raises(BadInput) as caught:
        checked(manifest((path, 1)))
    assert all(each.isprintable() for each in caught.value.sentence)


@pytest.mark.parametrize(
    "bad",
    [
        manifest(),
        manifest(("a", 1), ("a", 1)),
        manifest(("b", 1), ("a", 1)),
        manifest(("a", 1), ("a/b", 1)),
        manifest(("a", -1), ("b", 2)),
        manifest(("a", 10), chunks=9),
        manifest(("a", 1 << 41)),
        DatasetManifest(files=(ManifestFile("a", 1),), chunks=(ManifestChunk("A" * 64, 1),)),
        DatasetManifest(
            files=(ManifestFile("a", 8),),
            chunks=(ManifestChunk(EMPTY, 2), ManifestChunk(EMPTY, 4), ManifestChunk(EMPTY, 2)),
        ),
        DatasetManifest(
            files=(ManifestFile("a", 1),), chunks=(ManifestChunk(EMPTY, 1), ManifestChunk(EMPTY, 0))
        ),
    ],
)
def test_contradiction_is_refused(bad: DatasetManifest) -> None:
    with pytest.raises(BadInput):
        checked(bad)


def test_chunks_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "CHUNKS_MAX", 1)
    with pytest.raises(BadInput, match="chunks"):
        checked(
            DatasetManifest(
                files=(ManifestFile("a", 2),), chunks=(ManifestChunk(EMPTY, 1), ManifestChunk(EMPTY, 1))
            )
        )


def test_folders_are_limited_like_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "FOLDERS_MAX", 10)
    checked(manifest(("a" + "/b" * 10, 1)))
    with pytest.raises(BadInput, match="folders"):
        checked(manifest(("a" + "/b" * 10, 1), ("b/c", 1)))


def test_number_of_files_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "FILES_MAX", 3)
    checked(manifest(*((str(number), 0) for number in range(3))))
    with pytest.raises(BadInput, match="1 to 3 files, not 4"):
        checked(manifest(*((str(number), 0) for number in range(4))))


@given(st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode("utf-8", "replace")))
def test_any_content_is_a_manifest_or_bad_input(content: bytes) -> None:
    try:
        found = manifest_from(content)
    except BadInput:
        return
    assert found.files


names = st.text("abé.-_ 1", min_size=1, max_size=12).filter(lambda name: name not in (".", ".."))
paths = st.lists(names, min_size=1, max_size=3).map("/".join)


@settings(max_examples=60)
@given(st.dictionaries(paths, st.binary(max_size=50), min_size=1, max_size=8), st.integers(1, 40))
def test_data_survives_chunks_and_tar(files: dict[str, bytes], size: int) -> None:
    kept = {name: files[name] for name in files if not any(name.startswith(f"{each}/") for each in files)}
    content = b"".join(kept[name] for name in sorted(kept))
    chunks = [content[at : at + size] for at in range(0, len(content), size)]
    made = DatasetManifest(
        files=tuple(ManifestFile(name, len(kept[name])) for name in sorted(kept)),
        chunks=tuple(ManifestChunk(sha256(each).hexdigest(), len(each)) for each in chunks),
    )
    tar = b"".join(joined(tar_of(checked(made), chunks), 700))
    with tarfile.open(fileobj=io.BytesIO(tar)) as archive:
        found = {each.name: archive.extractfile(each).read() for each in archive}  # type: ignore[union-attr]
    assert found == kept


@settings(max_examples=30)
@given(st.lists(st.integers(0, 60), min_size=1, max_size=8))
def test_local_chunks_are_those_of_the_manifest(sizes: list[int]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr(dataset_files, "CHUNK_BYTES", 20)
        for number, size in enumerate(sizes):
            (Path(name) / f"{number}").write_bytes(os.urandom(size))
        local = LocalDataset(Path(name))
        found = checked(msgspec.json.decode(local.manifest(), type=DatasetManifest))
        content = b"".join((Path(name) / each.path).read_bytes() for each in found.files)
        assert b"".join(local.chunk(each.digest) for each in found.chunks) == content
        assert all(each.size_bytes <= 20 for each in found.chunks)


def test_file_that_changes_during_a_push_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"before")
    local = LocalDataset(tmp_path)
    local.manifest()
    (tmp_path / "a").write_bytes(b"behind")
    with pytest.raises(BadInput, match="changed"):
        local.chunk(local.chunks[0][0])
    (tmp_path / "a").write_bytes(b"")
    with pytest.raises(BadInput, match="changed"):
        local.chunk(local.chunks[0][0])
