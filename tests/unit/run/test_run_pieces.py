"""Only changed files of a folder are uploaded again, and what is put together is exactly what was packed."""

from base64 import b64decode
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any

import pytest

from teraflock.api.convert.run import pieces_from
from teraflock.base.errors import BadInput, Conflict, Refused
from teraflock.cli.run.workdir import pack
from teraflock.client.run import Runs
from teraflock.run.files import RunFiles
from teraflock.run.pieces import UploadPiece, list_of
from teraflock.wire.run import PiecesAnswer, UploadAnswer

PROJECT = "prj_1"


class NearRuns(Runs):
    """The client of a server in the same process. Counts what is sent."""

    def __init__(self, files: RunFiles) -> None:
        self.files, self.sent_bytes = files, 0

    def _get(self, kind: Any, /, *path: str, **query: object) -> Any:
        return UploadAnswer(**self._seen(*self.files.received_bytes(PROJECT, path[1])))

    def _act(self, method: Any, kind: Any, *path: str, body: Any = None, **query: object) -> Any:
        if kind is PiecesAnswer:
            pieces = pieces_from(body)
            if (missing := self.files.missing_pieces(PROJECT, path[1], pieces)) and not body.rest:
                return PiecesAnswer(missing=missing, complete=False)
            self.files.assemble(PROJECT, path[1], pieces, body.rest)
            return PiecesAnswer(missing=(), complete=True)
        content = b64decode(body.content)
        self.sent_bytes += len(content)
        return UploadAnswer(
            **self._seen(*self.files.receive(PROJECT, path[1], body.offset, content, body.size_bytes))
        )

    def _seen(self, received: int, complete: bool) -> dict[str, Any]:
        return {"received_bytes": received, "complete": complete}

    def sync(self, folder: Path) -> int:
        """Upload a folder, check the result, and return how many bytes were sent."""
        before, packed = self.sent_bytes, pack(folder)
        self.upload_changes(packed.digest, packed.content, packed.pieces)
        assert b"".join(self.files.upload(PROJECT, packed.digest)) == packed.content
        return self.sent_bytes - before


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    draw, made = Random(1), tmp_path / "project"
    for number in range(120):
        path = made / f"part{number % 7}" / f"module_{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(draw.randbytes(3000))
    (made / "weights.bin").write_bytes(draw.randbytes(9 << 20))
    return made


def test_second_upload_sends_only_what_changed(folder: Path, tmp_path: Path) -> None:
    client = NearRuns(RunFiles(tmp_path / "server"))
    whole = client.sync(folder)
    assert whole > 9 << 20
    assert client.sync(folder) == 0
    (folder / "part3" / "module_3.py").write_bytes(b"print('changed')\n")
    assert client.sync(folder) < 400_000, "the piece with the file, not the 9 MB beside it"
    (folder / "new.py").write_bytes(b"print('new')\n")
    (folder / "part5" / "module_5.py").unlink()
    assert client.sync(folder) < 800_000
    with (folder / "weights.bin").open("ab") as file:
        file.write(b"more")
    assert client.sync(folder) < 6 << 20, "the head and the end of the large file"


@pytest.mark.parametrize("seed", range(12))
def test_any_edits_arrive_exactly(seed: int, tmp_path: Path) -> None:
    draw, folder = Random(seed), tmp_path / "project"
    folder.mkdir()
    client = NearRuns(RunFiles(tmp_path / "server"))
    names = [f"{'long' * 30 * (number % 2)}{number}" for number in range(30)]
    for _ in range(8):
        for name in draw.sample(names, 5):
            path = folder / name
            if path.exists() and draw.random() < 0.3:
                path.unlink()
            else:
                path.write_bytes(draw.randbytes(draw.choice((0, 1, 700, 300_000))))
        client.sync(folder)


def test_damaged_or_missing_pieces_are_never_put_together(folder: Path, tmp_path: Path) -> None:
    files = RunFiles(tmp_path / "server")
    client = NearRuns(files)
    client.sync(folder)
    first = pack(folder)
    stored = tmp_path / "server" / "uploads" / PROJECT / first.digest
    stored.write_bytes(bytes(len(first.content)))  # a failing disk
    (folder / "new.py").write_bytes(b"1")
    second = pack(folder)
    with pytest.raises(Conflict, match="announced content"):
        client.upload_changes(second.digest, second.content, second.pieces)
    assert files.received_bytes(PROJECT, second.digest) == (0, False)
    listed = list_of(stored)
    listed.write_bytes(b"damaged")
    assert client.sync(folder) == len(second.content), "without a list everything is sent"


def test_wrong_pieces_are_refused(tmp_path: Path) -> None:
    files = RunFiles(tmp_path)
    content = b"content"
    digest = sha256(content).hexdigest()
    piece = UploadPiece(digest, len(content))
    with pytest.raises(Conflict, match="not been uploaded"):
        files.assemble(PROJECT, digest, [piece], "0" * 64)
    files.receive(PROJECT, digest, 0, content, len(content))
    with pytest.raises(Conflict, match="whole content"):
        files.assemble(PROJECT, digest, [UploadPiece(sha256(b"con").hexdigest(), 3)], "")
    with pytest.raises(Conflict, match="announced content"):
        files.assemble(PROJECT, digest, [UploadPiece("0" * 64, 7)], "")
    with pytest.raises(BadInput, match="up to 8 MiB"):
        files.assemble(PROJECT, digest, [UploadPiece(digest, 9 << 20)], "")
    with pytest.raises(BadInput, match="SHA-256"):
        files.assemble(PROJECT, digest, [piece], "../../etc/passwd")
    with pytest.raises(Refused, match="can have up to"):
        files.assemble(PROJECT, "1" * 64, [UploadPiece("2" * 64, 8 << 20)] * 40, "")
    assert files.missing_pieces("prj_2", digest, [piece]) == (0,), "another project has to send it"
