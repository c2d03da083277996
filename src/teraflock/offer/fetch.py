"""Download a catalog from a URL if it has changed.

Does not touch the database. Writes the download to a folder of the caller. A download that is incomplete, too large,
too slow or does not match its checksum raises an error, and the old catalog stays.
"""

import errno
import hashlib
import http.client
import re
import tarfile
import time
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path, PurePosixPath
from typing import IO, Final
from urllib.parse import urlsplit

import msgspec

from teraflock.base.errors import BadInput, BrokenSource, StorageFailed, TeraflockError, Unavailable

TIMEOUT_SECONDS: Final = 30.0  # without receiving a byte
TOTAL_SECONDS_MAX: Final = 900.0  # for the whole download: a catalog of 20 MB takes this long at 22 kB/s
BYTES_MAX: Final = 1 << 30  # the largest known catalog has 20 MB
UNPACKED_FILES_MAX: Final = 10_000
CHUNK_BYTES: Final = 1 << 16
SHA256_CHARACTERS: Final = 64
NAME_CHARACTERS_MAX: Final = 100  # of a file name taken from the URL; file systems allow 255 bytes

Progress = Callable[[int, int | None], None]


class Fetched(msgspec.Struct, frozen=True):
    path: Path
    """A CSV file, or the folder into which an archive was unpacked."""
    sha256: str
    etag: str
    last_modified: str
    commit_day: str = ""
    """The day of the commit, if the file is an archive that `git archive` made."""

    @property
    def day(self) -> str:
        """The date of the prices: that of the commit, or of the file on the server. Empty if neither is known."""
        if self.commit_day:
            return self.commit_day
        try:
            return parsedate_to_datetime(self.last_modified).date().isoformat()
        except (TypeError, ValueError):
            return ""


def fetch(
    url: str,
    into: Path,
    *,
    etag: str = "",
    last_modified: str = "",
    sha256: str = "",
    timeout_seconds: float = TIMEOUT_SECONDS,
    progress: Progress = lambda done, total: None,
) -> Fetched | None:
    """Download the catalog at `url`. Return `None` if it still has this `etag` or date."""
    _check(url)
    expected = sha256 or _published_checksum(url, timeout_seconds)
    conditions = {"If-None-Match": etag, "If-Modified-Since": last_modified}
    request = urllib.request.Request(url, headers={k: v for k, v in conditions.items() if v})  # noqa: S310
    try:
        with urllib.request.urlopen(request, timeout=timeout_seconds) as response:  # noqa: S310
            file = _place(url, into)
            found = _save(response, file, url, progress)
            headers = response.headers
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == http.HTTPStatus.NOT_MODIFIED:
            return None
        raise Unavailable(f"{url} answered {error.code} {error.reason}") from None
    except (urllib.error.URLError, TimeoutError, ConnectionError) as error:
        raise _unreachable(url, error) from None
    except (http.client.HTTPException, OSError) as error:
        _raise_disk_errors(error)
        raise BrokenSource(
            f"The download of {url} was interrupted", hint="Try again; nothing was changed"
        ) from None
    if expected and found != expected.lower():
        raise BrokenSource(
            f"The checksum of {url} does not match: {found[:12]}… instead of {expected[:12].lower()}…",
            hint="Try again; nothing was changed",
        )
    path = _unpacked(file, into / "unpacked")
    commit_day = "" if path == file else _commit_day(file)
    return Fetched(path, found, headers.get("ETag", ""), headers.get("Last-Modified", ""), commit_day)


def _check(url: str) -> None:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        url.encode("ascii")
        (parts.hostname or "").encode(
            "idna"
        )  # fails like the resolver would, such as on labels longer than 63 characters
    except ValueError:
        usable = False
    if usable and parts.password is not None:
        raise BadInput(
            f"The URL contains a password: `{parts.scheme}://…@{parts.hostname}`",
            hint="The URL is stored and shown with the source; use one without a password",
        )
    if not usable or any(character <= " " for character in url):
        raise BadInput(
            f"`{url}` is not a valid URL",
            hint="Use `https://` or `http://`, and percent-encode characters that are not ASCII",
        )


def _place(url: str, into: Path) -> Path:
    """Return the path of the download. Keeps the last two parts of the URL, which tell the importers the cloud."""
    names = [
        part[-NAME_CHARACTERS_MAX:] for part in PurePosixPath(urlsplit(url).path).parts if part.strip("/.")
    ]
    file = into.joinpath("download", *names[-2:]) if names else into / "download" / "catalog"
    file.parent.mkdir(parents=True, exist_ok=True)
    return file


DISK_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
DISK_UNUSABLE: Final = frozenset({errno.EACCES, errno.EPERM, errno.EROFS, errno.EIO})


def _raise_disk_errors(error: Exception) -> None:
    """Raise errors of the disk, so that they are not reported as errors of the network or the archive."""
    if isinstance(error, OSError) and error.errno in DISK_FULL:
        raise StorageFailed(
            "The disk is full; the download was stopped",
            hint="Free some space and try again; nothing was changed",
        ) from error
    if isinstance(error, OSError) and error.errno in DISK_UNUSABLE and error.filename:
        raise error


def _save(response: http.client.HTTPResponse, file: Path, url: str, progress: Progress) -> str:
    """Write the body to a file and return its checksum."""
    length = response.headers.get("Content-Length", "")
    total = int(length) if length.isascii() and length.isdigit() else None
    if total and total > BYTES_MAX:
        raise BrokenSource(f"{url} is too large for a catalog: {total:,} bytes")
    digest = hashlib.sha256()
    done, began = 0, time.monotonic()
    with file.open("wb") as out:
        while chunk := response.read(CHUNK_BYTES):
            out.write(chunk)
            digest.update(chunk)
            done += len(chunk)
            progress(done, total)
            if done > BYTES_MAX:
                raise BrokenSource(f"{url} is too large for a catalog: over {BYTES_MAX:,} bytes")
            if time.monotonic() - began > TOTAL_SECONDS_MAX:
                raise Unavailable(f"{url} is too slow: {done:,} bytes in {TOTAL_SECONDS_MAX:.0f} seconds")
    if total is not None and done != total:
        raise BrokenSource(
            f"The download of {url} was interrupted after {done:,} of {total:,} bytes",
            hint="Try again; nothing was changed",
        )
    return digest.hexdigest()


def _published_checksum(url: str, timeout_seconds: float) -> str:
    """Return the checksum from `URL.sha256`. Empty if there is no such file."""
    parts = urlsplit(url)
    if not parts.path.strip("/"):
        return ""
    checksum_url = parts._replace(path=f"{parts.path}.sha256").geturl()
    try:
        with urllib.request.urlopen(checksum_url, timeout=timeout_seconds) as response:  # noqa: S310
            words = response.read(1024).decode("ascii", "replace").split()
    except urllib.error.HTTPError as error:
        error.close()
        return ""  # most publishers have no such file
    except (OSError, http.client.HTTPException) as error:
        raise _unreachable(url, error) from None
    word = words[0].lower() if words else ""
    return word if len(word) == SHA256_CHARACTERS and set(word) <= set("0123456789abcdef") else ""


def _unreachable(url: str, error: Exception) -> Unavailable:
    reason = getattr(error, "reason", error)
    if isinstance(reason, TimeoutError):
        return Unavailable(f"{url} did not answer in time", hint="Try again later; nothing was changed")
    words = getattr(reason, "strerror", None) or str(reason)
    return Unavailable(f"Cannot reach {url}: {words}", hint="Nothing was changed")


# --- archives ------------------------------------------------------------------------------------------------------


PACKED: Final = (b"PK\x03\x04", b"\x1f\x8b", b"BZh91AY&SY", b"\xfd7zXZ")
"""First bytes of zip, gzip, bzip2 and xz files. Such a file is never a CSV file, even if it cannot be unpacked."""


def _unpacked(file: Path, folder: Path) -> Path:
    """Unpack the CSV files of an archive into `folder`. Return a file that is not an archive as it is."""
    try:
        if zipfile.is_zipfile(file):
            with zipfile.ZipFile(file) as archive:
                names = [member for member in archive.infolist() if not member.is_dir()]
                return _extract(((m.filename, archive.open(m)) for m in names if _is_csv(m.filename)), folder)
        if tarfile.is_tarfile(file):
            with tarfile.open(file) as archive:
                root = _extract(_tar_members(archive), folder)
                _read_to_the_end(archive)
                return root
        with file.open("rb") as content:
            if content.read(16).startswith(PACKED):
                raise tarfile.ReadError
    except TeraflockError:
        raise
    except Exception as error:  # Python raises many kinds of errors for files that are not archives
        _raise_disk_errors(error)
        raise BrokenSource(
            f"Cannot unpack the archive `{file.name}`: it is damaged, or neither zip nor tar",
            hint="Try again; nothing was changed",
        ) from None
    return file


COMMIT_ID: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


def _commit_day(file: Path) -> str:
    """Return the day of the commit of which `git archive` made this archive. It notes the commit in a comment.

    The times in other archives are those of the files on somebody's disk, and say nothing about the prices.
    """
    if zipfile.is_zipfile(file):
        with zipfile.ZipFile(file) as archive:
            comment, member = archive.comment.decode("ascii", "replace"), archive.infolist()[0]
            day = "{:04}-{:02}-{:02}".format(*member.date_time)
    else:
        with tarfile.open(file) as unpacked:
            first = unpacked.next()
            comment = unpacked.pax_headers.get("comment", "")
            day = datetime.fromtimestamp(first.mtime if first else 0, UTC).date().isoformat()
    return day if COMMIT_ID.fullmatch(comment) else ""


def _read_to_the_end(archive: tarfile.TarFile) -> None:
    """Read to the end of the compressed data, where its checksum is. `tarfile` may stop before."""
    while archive.fileobj.read(CHUNK_BYTES):
        pass


def _tar_members(archive: tarfile.TarFile) -> Iterator[tuple[str, IO[bytes]]]:
    for member in archive:
        if member.isfile() and _is_csv(member.name) and (content := archive.extractfile(member)):
            yield member.name, content


def _is_csv(name: str) -> bool:
    return name.lower().endswith(".csv")


def _extract(members: Iterator[tuple[str, IO[bytes]]], folder: Path) -> Path:
    """Write the members below `folder`, never outside it, and return the root of the catalog."""
    written = files = 0
    for name, content in members:
        parts = [
            part for part in PurePosixPath(name.replace("\\", "/")).parts if part not in ("/", "..", ".")
        ]
        target = folder.joinpath(*parts)
        target.parent.mkdir(parents=True, exist_ok=True)
        files += 1
        with content, target.open("wb") as out:
            while chunk := content.read(CHUNK_BYTES):
                written += len(chunk)
                if written > BYTES_MAX or files > UNPACKED_FILES_MAX:
                    raise BrokenSource("The archive is too large for a catalog when unpacked")
                out.write(chunk)
    if not files:
        raise BrokenSource("The archive contains no CSV files")
    return _catalog_root(folder)


def _catalog_root(folder: Path) -> Path:
    """Return the folder of the catalog. Of several versions (`v7`, `v8`), the newest."""
    clouds = {path.parent.parent for path in folder.rglob("vms.csv")}
    tables = {path.parent for path in folder.rglob("*.csv")}
    return max(clouds or tables, key=lambda path: (_version(path.name), str(path)))


def _version(name: str) -> int:
    return int(name[1:]) if name[:1] == "v" and name[1:].isascii() and name[1:].isdigit() else 0
