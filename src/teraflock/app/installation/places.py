"""Where everything of the house lies.

The server's files are in `<TERA_HOME>/cloud`, which nobody else may enter; the client's connection and SSH files beside
it. An engine of our own cannot lie there: root of a guest is nobody on the host, and must be let through every folder
on the way to its disk.
"""

import hashlib
import os
from pathlib import Path
from typing import Final

from teraflock.app.home import home
from teraflock.app.settings import LOG_FILE, Place

ENGINES: Final = Path("/var/lib/teraflock")


class Places:
    """Paths only: nothing is made or read here."""

    def __init__(self, folder: Path | None = None) -> None:
        self.home = folder or Path(home())
        self.server = Place(self.home)
        self.cloud = self.server.folder
        self.settings = self.server.settings
        self.pid = self.server.pid
        self.operator_key = self.server.operator_key
        self.log = self.cloud / LOG_FILE
        self.environment = self.cloud / "server.env"
        """What the environment said to a server that systemd starts."""
        self.why_simulated = self.cloud / "why-simulated.json"
        """Why no real engine could be had when the house was set up."""
        self.lock = self.home / "house.lock"
        """Beside the folder, not in it: who removes the folder holds the lock."""
        self.engine = ENGINES / hashlib.sha256(os.fsencode(self.home)).hexdigest()[:8]
        self.lxd = self.engine / "lxd"
        """The `LXD_DIR` of a daemon of our own."""
        self.connection = self.home / "connection.json"
        self.ssh = self.home / "ssh"
