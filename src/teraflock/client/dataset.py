"""Datasets of a project."""

import time
from base64 import b64encode
from typing import Final

from teraflock.base.errors import Refused, TooMany
from teraflock.client.noun import Noun
from teraflock.wire.dataset import DatasetAnswer, DatasetList, DatasetRequest, MissingChunks
from teraflock.wire.run import UPLOAD_PIECE_BYTES, UploadAnswer, UploadRequest

_PATH = "datasets"
PAUSE_SECONDS: Final = 1.0
"""How long an upload pauses if the server limits its requests."""


class Datasets(Noun):
    def list(self) -> tuple[DatasetAnswer, ...]:
        return self._get(DatasetList, _PATH).items

    def get(self, ref: str) -> DatasetAnswer:
        return self._get(DatasetAnswer, _PATH, ref)

    def create(self, name: str, manifest: str) -> DatasetAnswer:
        """Announce a dataset. `manifest` is the SHA-256 of its manifest, which was uploaded with `runs.upload`."""
        body = DatasetRequest(name=name, manifest=manifest)
        return self._act("POST", DatasetAnswer, _PATH, body=body)

    def missing(self, ref: str) -> MissingChunks:
        return self._get(MissingChunks, _PATH, ref, "missing")

    def upload(self, ref: str, digest: str, content: bytes) -> None:
        """Upload a chunk. Continues where an earlier upload of it ended."""
        at, stalled = 0, 0
        while True:
            text = b64encode(content[at : at + UPLOAD_PIECE_BYTES]).decode()
            piece = UploadRequest(offset=at, size_bytes=len(content), content=text)
            try:
                seen = self._act("PUT", UploadAnswer, _PATH, ref, "chunks", digest, body=piece)
            except TooMany:
                time.sleep(PAUSE_SECONDS)
                continue
            if seen.complete:
                return
            stalled = stalled + 1 if seen.received_bytes <= at else 0
            if stalled > 3:
                raise Refused("The upload does not proceed", hint="Run the command again")
            at = seen.received_bytes

    def complete(self, ref: str) -> DatasetAnswer:
        return self._act("POST", DatasetAnswer, _PATH, ref, "complete")

    def delete(self, ref: str) -> None:
        self._send("DELETE", _PATH, ref)
