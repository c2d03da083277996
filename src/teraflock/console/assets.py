"""Static files, held in memory: their addresses contain a digest of their content, so browsers keep them for ever."""

import gzip
from collections.abc import Iterator, Mapping
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

from teraflock.console.answer import Answer
from teraflock.console.page import PREFIX

STATIC: Final = f"{PREFIX}/static/"
_TYPES: Final[Mapping[str, str]] = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "mjs": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
_KEPT: Final = "public, max-age=31536000, immutable"
_DIGEST_CHARACTERS: Final = 12


class Assets:
    def __init__(self) -> None:
        self._contents: dict[str, bytes] = {}
        self._answers: dict[str, Answer] = {}
        self._addresses: dict[str, str] = {}
        for name, file in _walk(files("teraflock.console") / "static"):
            self._keep(name, file.read_bytes())

    def address(self, name: str) -> str:
        """The address of a file, such as `console.css`."""
        return self._addresses[name]

    def answer(self, path: str) -> Answer | None:
        """A file, compressed when it is first asked for: all at once would delay the start of the server."""
        content = self._contents.pop(path, None)
        if content is not None:
            self._answers[path] = Answer(
                body=gzip.compress(content, mtime=0),
                media_type=_TYPES[path.rpartition(".")[2]],
                headers={"Cache-Control": _KEPT, "Content-Encoding": "gzip"},
            )
        return self._answers.get(path)

    def _keep(self, name: str, content: bytes) -> None:
        digest = sha256(content).hexdigest()[:_DIGEST_CHARACTERS]
        self._addresses[name] = f"{STATIC}{digest}/{name}"
        self._contents[self._addresses[name]] = content


def _walk(folder: Traversable, at: str = "") -> Iterator[tuple[str, Traversable]]:
    for each in sorted(folder.iterdir(), key=lambda each: each.name):
        if each.is_dir():
            yield from _walk(each, f"{at}{each.name}/")
        elif each.name.rpartition(".")[2] in _TYPES:
            yield f"{at}{each.name}", each
