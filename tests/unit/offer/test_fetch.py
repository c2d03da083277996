"""Downloads from a loopback server that answers correctly, closes early, sends wrong data, or is silent."""

import errno
import hashlib
import io
import os
import socket
import subprocess
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from tests.unit.offer.web import Web, body, chunked, cut_short, redirect, status, web_server

from teraflock.base.errors import BadInput, BrokenSource, StorageFailed, Unavailable
from teraflock.offer import fetch as module
from teraflock.offer.fetch import Fetched, fetch

CSV = b"provider,gpu\naws,T4\n"
DATE = "Sat, 22 Aug 2026 10:00:00 GMT"


@pytest.fixture
def web() -> Iterator[Web]:
    with web_server() as web:
        yield web


@pytest.fixture
def into(tmp_path: Path) -> Path:
    folder = tmp_path / "into"
    folder.mkdir()
    return folder


def fetched(url: str, into: Path, sha256: str = "") -> Fetched:
    result = fetch(url, into, timeout_seconds=5, sha256=sha256)
    assert result is not None
    return result


# --- complete downloads --------------------------------------------------------------------------------------------


def test_a_file_is_downloaded_with_its_headers(web: Web, into: Path) -> None:
    web.pages["/prices.csv"] = body(CSV, ETag='"one"', Last_Modified=DATE)
    seen: list[tuple[int, int | None]] = []
    result = fetch(web.at("/prices.csv"), into, progress=lambda done, total: seen.append((done, total)))
    assert result is not None
    assert result.path.read_bytes() == CSV
    assert result.path.name == "prices.csv"
    assert result.sha256 == hashlib.sha256(CSV).hexdigest()
    assert (result.etag, result.last_modified, result.day) == ('"one"', DATE, "2026-08-22")
    assert seen[-1] == (len(CSV), len(CSV))


def test_an_unchanged_file_is_not_downloaded_again(web: Web, into: Path) -> None:
    web.pages["/prices.csv"] = body(CSV, ETag='"one"', Last_Modified=DATE)
    url = web.at("/prices.csv")
    assert fetch(url, into, etag='"one"') is None
    assert fetch(url, into, last_modified=DATE) is None
    assert fetch(url, into, etag='"two"') is not None
    assert web.asked[1][1]["If-None-Match"] == '"one"'
    assert web.asked[3][1]["If-Modified-Since"] == DATE


def test_a_chunked_response_without_length_or_date_is_accepted(web: Web, into: Path) -> None:
    web.pages["/prices.csv"] = chunked(CSV, whole=True)
    result = fetched(web.at("/prices.csv"), into)
    assert result.path.read_bytes() == CSV
    assert (result.etag, result.last_modified, result.day) == ("", "", "")


def test_a_redirect_is_followed(web: Web, into: Path) -> None:
    web.pages["/old.csv"] = redirect("/new.csv")
    web.pages["/new.csv"] = body(CSV)
    assert fetched(web.at("/old.csv"), into).path.read_bytes() == CSV


def test_a_redirect_to_a_local_file_is_refused(web: Web, into: Path) -> None:
    web.pages["/prices.csv"] = redirect("file:///etc/hostname")
    with pytest.raises(Unavailable, match="302"):
        fetch(web.at("/prices.csv"), into)


@pytest.mark.parametrize(
    ("path", "folder", "name"),
    [
        ("/catalogs/v8/aws/vms.csv", "aws", "vms.csv"),
        ("/prices.csv", "download", "prices.csv"),
        ("/", "download", "catalog"),
        ("", "download", "catalog"),
        ("/a/..", "download", "a"),
        ("/unpacked", "download", "unpacked"),
        ("/x?file=prices.csv", "download", "x"),
        ("/" + "n" * 500 + ".csv", "download", "n" * 96 + ".csv"),
    ],
    ids=["cloud", "plain", "root", "host", "dots", "our own word", "query", "long"],
)
def test_the_download_keeps_the_names_of_cloud_and_file(
    web: Web, into: Path, path: str, folder: str, name: str
) -> None:
    web.pages[path or "/"] = body(CSV)
    result = fetched(web.at(path), into)
    assert (result.path.parent.name, result.path.name) == (folder, name)
    assert result.path.is_relative_to(into)


# --- checksums -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["{}", "{}  prices.csv\n", "  {}\n"], ids=["bare", "as sha256sum", "spaces"])
def test_a_published_checksum_is_checked(web: Web, into: Path, form: str) -> None:
    web.pages["/prices.csv"] = body(CSV)
    web.pages["/prices.csv.sha256"] = body(form.format(hashlib.sha256(CSV).hexdigest().upper()).encode())
    assert fetched(web.at("/prices.csv"), into).path.read_bytes() == CSV
    web.pages["/prices.csv.sha256"] = body(form.format("0" * 64).encode())
    with pytest.raises(BrokenSource, match="does not match"):
        fetch(web.at("/prices.csv"), into)


def test_a_checksum_from_the_user_takes_precedence(web: Web, into: Path) -> None:
    web.pages["/prices.csv"] = body(CSV)
    right = hashlib.sha256(CSV).hexdigest()
    assert fetched(web.at("/prices.csv"), into, sha256=right.upper()).sha256 == right
    assert web.paths_asked() == ["/prices.csv"]
    with pytest.raises(BrokenSource, match="does not match"):
        fetch(web.at("/prices.csv"), into, sha256="f" * 64)


@pytest.mark.parametrize("content", [b"", b"<html>not found</html>", b"g" * 64, b"abc\n", b"\xff\xfe"])
def test_an_invalid_checksum_file_is_ignored(web: Web, into: Path, content: bytes) -> None:
    web.pages["/prices.csv"] = body(CSV)
    web.pages["/prices.csv.sha256"] = body(content)
    assert fetched(web.at("/prices.csv"), into).path.read_bytes() == CSV


def test_the_checksum_url_ignores_the_query_string(web: Web, into: Path) -> None:
    web.pages["/prices.csv?day=1"] = body(CSV)
    fetch(web.at("/prices.csv?day=1"), into)
    assert web.paths_asked() == ["/prices.csv.sha256?day=1", "/prices.csv?day=1"]


# --- failures ------------------------------------------------------------------------------------------------------


def test_an_interrupted_download_is_an_error(web: Web, into: Path) -> None:
    web.pages["/prices.csv"] = cut_short(CSV, 1000)
    with pytest.raises(BrokenSource, match="was interrupted") as caught:
        fetch(web.at("/prices.csv"), into)
    assert caught.value.hint == "Try again; nothing was changed"


def test_an_interrupted_chunked_download_is_an_error(web: Web, into: Path) -> None:
    web.pages["/prices.csv"] = chunked(CSV, whole=False)
    with pytest.raises(BrokenSource, match="was interrupted"):
        fetch(web.at("/prices.csv"), into)


@pytest.mark.parametrize("code", [404, 410, 500, 503])
def test_an_http_error_is_reported(web: Web, into: Path, code: int) -> None:
    web.pages["/prices.csv"] = status(code)
    with pytest.raises(Unavailable, match=f"answered {code}"):
        fetch(web.at("/prices.csv"), into)


@pytest.mark.parametrize("silent_at", ["/prices.csv", "/prices.csv.sha256"])
def test_a_silent_server_times_out(web: Web, into: Path, silent_at: str) -> None:
    web.pages["/prices.csv"] = body(CSV)
    web.pages[silent_at] = web.silent
    with pytest.raises(Unavailable, match="did not answer in time"):
        fetch(web.at("/prices.csv"), into, timeout_seconds=0.2)


def test_a_server_that_stops_sending_times_out(web: Web, into: Path) -> None:
    def half(request: object) -> None:
        cut_short(CSV, 1000)(request)  # type: ignore[arg-type]
        web.ended.wait(10)

    web.pages["/prices.csv"] = half
    with pytest.raises(Unavailable, match="did not answer in time"):
        fetch(web.at("/prices.csv"), into, timeout_seconds=0.2)


def test_a_very_slow_download_is_stopped(web: Web, into: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TOTAL_SECONDS_MAX", -1.0)
    web.pages["/prices.csv"] = body(CSV)
    with pytest.raises(Unavailable, match="is too slow"):
        fetch(web.at("/prices.csv"), into)


@pytest.mark.parametrize(
    "answer", [body(CSV), chunked(CSV, whole=True)], ids=["with length", "without length"]
)
def test_a_download_that_is_too_large_is_refused(
    web: Web, into: Path, monkeypatch: pytest.MonkeyPatch, answer: object
) -> None:
    monkeypatch.setattr(module, "BYTES_MAX", len(CSV) - 1)
    web.pages["/prices.csv"] = answer  # type: ignore[assignment]
    with pytest.raises(BrokenSource, match="is too large for a catalog"):
        fetch(web.at("/prices.csv"), into)


@pytest.mark.parametrize(
    "url",
    ["", "prices.csv", "/etc/passwd", "file:///etc/passwd", "ftp://127.0.0.1/x.csv", "http://", "https:///x.csv",
     "http://[::1", "http://127.0.0.1:99999/x", "http://127.0.0.1:port/x", "http://127.0.0.1/größe.csv",
     "http://127.0.0.1/a b.csv", "http://127.0.0.1/a\r\nb", f"http://{'a' * 64}.example/x", "http://a..b/x"],
)  # fmt: skip
def test_an_invalid_url_is_bad_input(into: Path, url: str) -> None:
    with pytest.raises(BadInput, match="is not a valid URL"):
        fetch(url, into)


def test_a_refused_connection_is_reported(into: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(Unavailable, match="Cannot reach .*: Connection refused"):
        fetch(f"http://127.0.0.1:{port}/prices.csv", into)


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EFBIG])
@pytest.mark.parametrize("unpacking", [False, True])
def test_a_full_disk_is_not_reported_as_a_broken_download(
    web: Web, into: Path, monkeypatch: pytest.MonkeyPatch, code: int, unpacking: bool
) -> None:
    def full(*_: object) -> None:
        raise OSError(code, "no room")

    web.pages["/c.zip"] = body(zipped({"a.csv": CSV}))
    monkeypatch.setattr(module, "_extract" if unpacking else "_save", full)
    with pytest.raises(StorageFailed, match="The disk is full"):
        fetch(web.at("/c.zip"), into)


def test_a_folder_without_write_permission_is_reported(
    web: Web, into: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def shut(*_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", "/somewhere")

    monkeypatch.setattr(module, "_save", shut)
    web.pages["/prices.csv"] = body(CSV)
    with pytest.raises(PermissionError):
        fetch(web.at("/prices.csv"), into)


# --- archives ------------------------------------------------------------------------------------------------------


def zipped(files: Mapping[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return out.getvalue()


def tarred(files: Mapping[str, bytes], kind: str) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=f"w:{kind}") as archive:  # type: ignore[call-overload]
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return out.getvalue()


VERSIONS = {
    "catalog-main/README.md": b"# hello",
    "catalog-main/catalogs/v7/aws/vms.csv": b"old\n",
    "catalog-main/catalogs/v8/aws/vms.csv": b"new\n",
    "catalog-main/catalogs/v8/gcp/vms.csv": b"new too\n",
    "catalog-main/catalogs/v8/common/metadata.csv": b"other\n",
    "catalog-main/catalogs/v10-draft/aws/vms.csv": b"draft\n",
}


@pytest.mark.parametrize("kind", ["zip", "", "gz", "bz2", "xz"])
def test_the_newest_version_in_an_archive_is_used(web: Web, into: Path, kind: str) -> None:
    web.pages["/catalog"] = body(zipped(VERSIONS) if kind == "zip" else tarred(VERSIONS, kind))
    path = fetched(web.at("/catalog"), into).path
    assert path.name == "v8"
    assert {file.parent.name: file.read_bytes() for file in path.glob("*/vms.csv")} == {
        "aws": b"new\n",
        "gcp": b"new too\n",
    }
    assert not list(into.rglob("README.md"))


@pytest.mark.parametrize("kind", ["zip", "gz"])
def test_archive_members_cannot_escape_the_folder(web: Web, into: Path, kind: str) -> None:
    files = {"../../x.csv": CSV, "/etc/y.csv": CSV, "a/../../z.csv": CSV, "..\\..\\w.csv": CSV}
    web.pages["/c"] = body(zipped(files) if kind == "zip" else tarred(files, kind))
    fetch(web.at("/c"), into)
    assert sorted(path.name for path in into.rglob("*.csv")) == ["w.csv", "x.csv", "y.csv", "z.csv"]
    assert not list(into.parent.glob("*.csv"))
    assert not Path("/etc/y.csv").exists()


def test_links_in_an_archive_are_ignored(web: Web, into: Path) -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        link = tarfile.TarInfo("secret.csv")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    web.pages["/c.tar.gz"] = body(out.getvalue())
    with pytest.raises(BrokenSource, match="contains no CSV files"):
        fetch(web.at("/c.tar.gz"), into)


def spoilt(content: bytes) -> bytes:
    middle = len(content) // 2
    return (
        content[:middle]
        + bytes(255 - byte for byte in content[middle : middle + 64])
        + content[middle + 64 :]
    )


LARGE = {"aws/vms.csv": bytes(hashlib.shake_256(b"noise").digest(20_000)), "gcp/vms.csv": CSV}


@pytest.mark.parametrize("kind", ["zip", "gz", "bz2", "xz"])
def test_a_damaged_archive_is_an_error(web: Web, into: Path, kind: str) -> None:
    web.pages["/c"] = body(spoilt(zipped(LARGE) if kind == "zip" else tarred(LARGE, kind)))
    with pytest.raises(BrokenSource, match="Cannot unpack .*: it is damaged"):
        fetch(web.at("/c"), into)


@pytest.mark.parametrize("kind", ["zip", "", "gz", "bz2", "xz"])
def test_a_truncated_archive_is_an_error(web: Web, into: Path, kind: str) -> None:
    whole = zipped(LARGE) if kind == "zip" else tarred(LARGE, kind)
    web.pages["/c"] = body(whole[: len(whole) // 2])
    with pytest.raises(BrokenSource, match="Cannot unpack .*: it is damaged"):
        fetch(web.at("/c"), into)


def test_a_tar_truncated_between_two_files_is_an_error(web: Web, into: Path) -> None:
    """The tar itself looks complete; only the compressed stream is not."""
    packed = zlib.compressobj(wbits=31)
    start = packed.compress(tarred(LARGE, "")[: 512 + 20_480]) + packed.flush(zlib.Z_FULL_FLUSH)
    web.pages["/c.tar.gz"] = body(start)
    with pytest.raises(BrokenSource, match="Cannot unpack .*: it is damaged"):
        fetch(web.at("/c.tar.gz"), into)


def test_an_encrypted_archive_is_an_error(web: Web, into: Path) -> None:
    content = bytearray(zipped({"a.csv": CSV}))
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        content[content.index(signature) + offset] |= 1  # the encryption flag
    web.pages["/c.zip"] = body(bytes(content))
    with pytest.raises(BrokenSource, match="Cannot unpack"):
        fetch(web.at("/c.zip"), into)


def test_archive_members_with_impossible_names_are_an_error(web: Web, into: Path) -> None:
    for names in (["n" * 300 + ".csv"], ["a.csv", "a.csv/b.csv"]):
        web.pages["/c.zip"] = body(zipped(dict.fromkeys(names, CSV)))
        with pytest.raises(BrokenSource, match="Cannot unpack"):
            fetch(web.at("/c.zip"), into)


def test_an_archive_that_is_too_large_unpacked_is_refused(
    web: Web, into: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = zipped({"a.csv": b"0" * 1_000_000})
    monkeypatch.setattr(module, "BYTES_MAX", 10_000)
    assert len(content) < 10_000
    web.pages["/c.zip"] = body(content)
    with pytest.raises(BrokenSource, match="too large for a catalog when unpacked"):
        fetch(web.at("/c.zip"), into)
    assert sum(path.stat().st_size for path in into.rglob("*.csv")) < 200_000


def test_an_archive_with_too_many_files_is_refused(
    web: Web, into: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "UNPACKED_FILES_MAX", 3)
    web.pages["/c.zip"] = body(zipped({f"{i}.csv": CSV for i in range(5)}))
    with pytest.raises(BrokenSource, match="too large for a catalog when unpacked"):
        fetch(web.at("/c.zip"), into)


def test_an_archive_without_csv_files_is_an_error(web: Web, into: Path) -> None:
    web.pages["/c.zip"] = body(zipped({"README.md": b"nothing"}))
    with pytest.raises(BrokenSource, match="contains no CSV files"):
        fetch(web.at("/c.zip"), into)


@pytest.mark.parametrize("form", ["tar", "tar.gz", "zip"])
def test_an_archive_of_git_has_the_date_of_its_commit(
    web: Web, into: Path, tmp_path: Path, form: str
) -> None:
    """The times of its files are those of the commit; `git archive` notes the commit's id."""
    folder = tmp_path / "repository"
    folder.mkdir()
    (folder / "prices.csv").write_bytes(CSV)
    when = "2026-08-22T12:00:00+00:00"
    env = {**os.environ, "GIT_AUTHOR_DATE": when, "GIT_COMMITTER_DATE": when, "TZ": "UTC"}
    names = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "x"]):
        subprocess.run(["git", *names, *words], cwd=folder, env=env, check=True)
    packed = subprocess.run(
        ["git", "archive", f"--format={form}", "HEAD"], cwd=folder, env=env, check=True, capture_output=True
    ).stdout
    web.pages["/git"] = body(packed)
    assert fetched(web.at("/git"), into).day == "2026-08-22"


@pytest.mark.parametrize("kind", ["zip", "gz"])
def test_the_times_in_other_archives_say_nothing(web: Web, into: Path, kind: str) -> None:
    packed = zipped({"prices.csv": CSV}) if kind == "zip" else tarred({"prices.csv": CSV}, kind)
    web.pages["/made"] = body(packed)
    assert fetched(web.at("/made"), into).commit_day == ""
