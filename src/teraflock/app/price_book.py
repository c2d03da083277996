"""The price book of own servers: a small JSON file in the user's folder."""

from teraflock.app.own_list import read_list, write_list
from teraflock.plan.owned import BOOK_NAME, Server


def read_book(home: str) -> list[Server]:
    return read_list(f"{home}/{BOOK_NAME}", Server, "the costs of your own hosts")


def write_book(home: str, servers: list[Server]) -> None:
    write_list(f"{home}/{BOOK_NAME}", servers)
