"""Runs: create, look, cancel, retry, read logs, fetch files."""

from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from itertools import accumulate
from typing import Final

from msgspec.structs import replace

from teraflock.base.errors import Refused
from teraflock.client.noun import PAGE, Noun, pages
from teraflock.client.transport import path_of
from teraflock.wire.run import (
    UPLOAD_PIECE_BYTES,
    UPLOAD_PIECES_MAX,
    PiecesAnswer,
    PiecesRequest,
    RunAnswer,
    RunDetails,
    RunLogAnswer,
    RunPage,
    RunRequest,
    SweepRequest,
    UploadAnswer,
    UploadRequest,
)

FETCH_SECONDS_MAX: Final = 60.0  # without receiving a byte


class Runs(Noun):
    def list(self, *, active: bool = False) -> tuple[RunAnswer, ...]:
        return pages(lambda after: self.page(after=after, active=active))

    def page(self, *, after: str = "", limit: int = PAGE, active: bool = False) -> RunPage:
        return self._get(RunPage, "runs", after=after, limit=limit, active=active or None)

    def create(self, request: RunRequest, *, idempotency_key: str = "") -> RunAnswer:
        return self._create(RunAnswer, "runs", body=request, idempotency_key=idempotency_key)

    def create_sweep(self, request: SweepRequest, *, idempotency_key: str = "") -> tuple[RunAnswer, ...]:
        return self._create(RunPage, "sweeps", body=request, idempotency_key=idempotency_key).items

    def get(self, ref: str) -> RunDetails:
        return self._get(RunDetails, "runs", ref)

    def cancel(self, ref: str) -> RunAnswer:
        return self._act("POST", RunAnswer, "runs", ref, "cancel")

    def retry(self, ref: str, *, budget_micros: int | None = None) -> RunAnswer:
        return self._act("POST", RunAnswer, "runs", ref, "retry", budget_micros=budget_micros)

    def log(self, ref: str, offset: int = 0, node: int = 0) -> RunLogAnswer:
        return self._get(RunLogAnswer, "runs", ref, "log", offset=offset or None, node=node or None)

    def outputs(self, ref: str) -> Iterator[bytes]:
        """The outputs as tar, in pieces as they arrive."""
        return self._transport.pieces(path_of("runs", ref, "outputs"), self._query({}), FETCH_SECONDS_MAX)

    def checkpoint(self, ref: str, name: str) -> Iterator[bytes]:
        path = path_of("runs", ref, "checkpoint")
        return self._transport.pieces(path, self._query({"name": name}), FETCH_SECONDS_MAX)

    def upload_changes(
        self,
        digest: str,
        content: bytes,
        sizes_bytes: Sequence[int],
        shown: Callable[[int, int], None] = lambda sent, size: None,
    ) -> None:
        """Upload a tar, but of pieces of these sizes only those that no earlier upload of the project has."""
        seen = self._get(UploadAnswer, "run-files", digest)
        if seen.complete:
            return
        if len(sizes_bytes) > UPLOAD_PIECES_MAX:
            self.upload(digest, content, shown)
            return
        parts = [
            content[end - size : end] for size, end in zip(sizes_bytes, accumulate(sizes_bytes), strict=True)
        ]
        request = PiecesRequest(
            digests=tuple(sha256(part).hexdigest() for part in parts), sizes_bytes=tuple(sizes_bytes)
        )
        answer = self._pieces(digest, request) if not seen.received_bytes else None
        if answer is not None and answer.complete:
            return
        if answer is None or len(answer.missing) == len(parts):
            self.upload(digest, content, shown)
            self._pieces(digest, request)  # the next upload can use its pieces
            return
        rest = b"".join(parts[position] for position in answer.missing)
        self.upload(named := sha256(rest).hexdigest(), rest, shown)
        self._pieces(digest, replace(request, rest=named))

    def _pieces(self, digest: str, request: PiecesRequest) -> PiecesAnswer:
        return self._act("POST", PiecesAnswer, "run-files", digest, "pieces", body=request)

    def upload(
        self, digest: str, content: bytes, shown: Callable[[int, int], None] = lambda sent, size: None
    ) -> None:
        """Upload a tar. Continues where an earlier upload of the same content ended."""
        seen = self._get(UploadAnswer, "run-files", digest)
        stalled = 0
        while not seen.complete:
            at = seen.received_bytes
            text = b64encode(content[at : at + UPLOAD_PIECE_BYTES]).decode()
            piece = UploadRequest(offset=at, size_bytes=len(content), content=text)
            seen = self._act("PUT", UploadAnswer, "run-files", digest, body=piece)
            stalled = stalled + 1 if seen.received_bytes <= at and not seen.complete else 0
            if stalled > 3:
                raise Refused("The upload does not proceed", hint="Run the command again")
            shown(seen.received_bytes, len(content))
