"""Announcements on stderr, each shown once after the output of a command.

They are requested only if a response of the server named a new one.
"""

from pathlib import Path
from typing import Final

from teraflock.app.files import put
from teraflock.app.home import home
from teraflock.cli.connection import connected
from teraflock.cli.output import remark
from teraflock.cli.table import printable
from teraflock.words.text import time_text

SEEN_FILE: Final = "announcements-seen"
SEEN_MAX: Final = 200


def show_announcements(newest: str) -> None:
    """Show the announcements that this user has not seen, and remember them."""
    file = Path(home()) / SEEN_FILE
    seen = file.read_text("ascii").split() if file.exists() else []
    if newest in seen:
        return
    with connected() as client:
        found = [each for each in client.announcements.list() if each.id not in seen]
    for each in reversed(found):
        until = f", until {time_text(each.until)}" if each.until else ""
        remark(f"\nAnnouncement of {time_text(each.created_at)}{until} (UTC): {printable(each.text)}")

    put(file, "\n".join([*seen, *(each.id for each in found)][-SEEN_MAX:]).encode() + b"\n")
