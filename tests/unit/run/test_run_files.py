"""Files of runs on the server: complete or absent, bounded, and the same after a crash."""

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from teraflock.base.errors import BadInput, Conflict, Refused
from teraflock.run import files as run_files
from teraflock.run.files import LOG_BYTES_MAX, UPLOAD_BYTES_MAX, RunFiles
from teraflock.run.service import whole_characters

CONTENT = bytes(range(256)) * 40
DIGEST = sha256(CONTENT).hexdigest()


def test_interrupted_upload_continues_where_it_ended(tmp_path: Path) -> None:
    files = RunFiles(tmp_path)
    assert files.received_bytes("prj_1", DIGEST) == (0, False)
    assert files.receive("prj_1", DIGEST, 0, CONTENT[:1000], len(CONTENT)) == (1000, False)
    assert files.receive("prj_1", DIGEST, 0, CONTENT[:1000], len(CONTENT)) == (1000, False), "sent twice"
    again = RunFiles(tmp_path)  # the server was killed
    assert again.receive("prj_1", DIGEST, 5000, CONTENT[5000:], len(CONTENT)) == (1000, False), "a gap"
    assert again.receive("prj_1", DIGEST, 1000, CONTENT[1000:], len(CONTENT)) == (len(CONTENT), True)
    assert b"".join(again.upload("prj_1", DIGEST)) == CONTENT
    assert again.received_bytes("prj_2", DIGEST) == (0, False), "another project has to upload it itself"


def test_upload_with_another_content_is_refused(tmp_path: Path) -> None:
    files = RunFiles(tmp_path)
    with pytest.raises(Conflict, match="announced content"):
        files.receive("prj_1", DIGEST, 0, CONTENT[::-1], len(CONTENT))
    assert files.received_bytes("prj_1", DIGEST) == (0, False)
    with pytest.raises(BadInput, match="larger than announced"):
        files.receive("prj_1", DIGEST, 0, CONTENT, 10)
    with pytest.raises(Refused, match="can have up to"):
        files.receive("prj_1", DIGEST, 0, CONTENT, UPLOAD_BYTES_MAX + 1)
    for name in ("../../etc/passwd", "A" * 64, ""):
        with pytest.raises(BadInput, match="SHA-256"):
            files.receive("prj_1", name, 0, CONTENT, len(CONTENT))


def test_number_of_uploads_has_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_files, "UPLOADS_MAX", 2)
    files = RunFiles(tmp_path)
    for name in ("1", "2", "2"):
        files.receive("prj_1", name * 64, 0, b"", 10)
    with pytest.raises(Refused, match="already stores 2 files"):
        files.receive("prj_1", "3" * 64, 0, b"", 10)
    files.receive("prj_2", "3" * 64, 0, b"", 10)


def test_log_is_the_same_when_a_piece_is_written_twice(tmp_path: Path) -> None:
    files = RunFiles(tmp_path)
    assert files.append_log("run_1", 0, b"hello ") == 6
    assert files.append_log("run_1", 6, b"lost") == 10
    assert files.append_log("run_1", 6, b"world") == 11
    assert files.log("run_1", 0, 100) == b"hello world"
    assert files.log("run_1", 6, 3) == b"wor"


def test_log_has_a_bound(tmp_path: Path) -> None:
    files = RunFiles(tmp_path)
    size = files.append_log("run_1", LOG_BYTES_MAX - 3, b"abcdef")
    assert files.log("run_1", LOG_BYTES_MAX - 3, 3) == b"abc"
    assert b"is not kept" in files.log("run_1", LOG_BYTES_MAX, 1000)
    assert files.append_log("run_1", size, b"more") == size


def test_log_that_reaches_its_bound_with_a_whole_piece_says_that_the_rest_is_missing(tmp_path: Path) -> None:
    files = RunFiles(tmp_path)
    size = files.append_log("run_1", LOG_BYTES_MAX - 3, b"abc")
    assert files.log("run_1", size, 1000) == b""
    size = files.append_log("run_1", size, b"d")
    assert b"is not kept" in files.log("run_1", LOG_BYTES_MAX, 1000)
    assert files.append_log("run_1", size, b"more") == size


def test_file_is_kept_completely_or_not_at_all(tmp_path: Path) -> None:
    files = RunFiles(tmp_path)
    files.keep("run_1", "outputs.tar", [b"old"])

    def pieces() -> Iterator[bytes]:
        yield b"new"
        raise Refused("a limit")

    with pytest.raises(Refused):
        files.keep("run_1", "outputs.tar", pieces())
    assert b"".join(files.tar("run_1", "outputs.tar")) == b"old"
    assert [path.name for path in (tmp_path / "runs" / "run_1").iterdir()] == ["outputs.tar"]


@pytest.mark.parametrize("text", ["plain", "ä", "€uro €", "𝄞𝄞"])
def test_characters_are_never_cut(text: str) -> None:
    content = text.encode()
    for end in range(len(content) + 1):
        piece = whole_characters(content[:end])
        assert piece.decode() == text[: len(piece.decode())]
        assert end - len(piece) < 4
    assert whole_characters(b"\xff\xfe") == b"\xff\xfe"
