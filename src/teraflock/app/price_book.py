"""The price book of own servers: a small JSON file in the user's folder."""

import os

import msgspec

from teraflock.base.errors import BrokenSource
from teraflock.plan.owned import BOOK_NAME, Server


def read_book(home: str) -> list[Server]:
    path = f"{home}/{BOOK_NAME}"
    if not os.path.exists(path):  # noqa: PTH110 -- see home.py
        return []
    with open(path, "rb") as book:  # noqa: PTH123
        content = book.read()
    try:
        return msgspec.json.decode(content, type=list[Server])
    except msgspec.MsgspecError as error:
        raise BrokenSource(f"The price book `{path}` cannot be read: {error}") from None


def write_book(home: str, servers: list[Server]) -> None:
    from pathlib import Path

    from teraflock.app.files import put  # here: a plan reads the book and needs no pathlib

    put(Path(home, BOOK_NAME), msgspec.json.format(msgspec.json.encode(servers), indent=2) + b"\n")
