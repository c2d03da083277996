"""The servers you own, as `tera plan` knows them: a small JSON file in the user's folder."""

import os

from teraflock.app.own_list import read_list, write_list
from teraflock.plan.owned import FILE_NAME, OLD_FILE_NAME, Server


def read_servers(home: str) -> list[Server]:
    path = f"{home}/{FILE_NAME}"
    if not os.path.exists(path):  # noqa: PTH110 -- see home.py
        path = f"{home}/{OLD_FILE_NAME}"
    return read_list(path, Server, "The list of your servers")


def write_servers(home: str, servers: list[Server]) -> None:
    """Write all of them. From then on the file with the old name is not read any more."""
    write_list(f"{home}/{FILE_NAME}", servers)
