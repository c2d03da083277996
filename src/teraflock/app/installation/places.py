"""The paths of an installation.

The server's files are in `<TERA_HOME>/cloud`, which only its owner can enter. The connection and the SSH files of the
client are next to it. Our own engine cannot be there: root in a guest is an unprivileged user on the host, and needs
access to every folder on the way to its disk.
"""

import hashlib
import os
from pathlib import Path
from typing import Final

from teraflock.app.home import home
from teraflock.app.settings import LOG_FILE, Place

ENGINES: Final = Path("/var/lib/teraflock")


class Places:
    """Paths only. Creates and reads nothing."""

    def __init__(self, folder: Path | None = None) -> None:
        self.home = folder or Path(home())
        self.server = Place(self.home)
        self.cloud = self.server.folder
        self.settings = self.server.settings
        self.pid = self.server.pid
        self.operator_key = self.server.operator_key
        self.log = self.cloud / LOG_FILE
        self.environment = self.cloud / "server.env"
        """The environment for a server that systemd starts."""
        self.why_simulated = self.cloud / "why-simulated.json"
        """Why no real engine was available when the installation was set up."""
        self.lock = self.home / "house.lock"
        """Next to the folder, not in it: the process that removes the folder holds the lock."""
        self.engine = ENGINES / hashlib.sha256(os.fsencode(self.home)).hexdigest()[:8]
        self.lxd = self.engine / "lxd"
        """The `LXD_DIR` of our own daemon."""
        self.connection = self.home / "connection.json"
        self.ssh = self.home / "ssh"
