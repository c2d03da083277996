"""Where everything of the house lies: all under `<TERA_HOME>/cloud`, but for the client's connection and SSH files."""

from pathlib import Path

from teraflock.app.home import home
from teraflock.app.settings import Place


class Places:
    """Paths only: nothing is made or read here."""

    def __init__(self, folder: Path | None = None) -> None:
        self.home = folder or Path(home())
        self.server = Place(self.home)
        self.cloud = self.server.folder
        self.settings = self.server.settings
        self.pid = self.server.pid
        self.operator_key = self.server.operator_key
        self.log = self.cloud / "server.log"
        self.lock = self.home / "house.lock"
        """Beside the folder, not in it: who removes the folder holds the lock."""
        self.engine = self.cloud / "engine"
        self.lxd = self.engine / "lxd"
        """The `LXD_DIR` of a daemon of our own."""
        self.connection = self.home / "connection.json"
        self.ssh = self.home / "ssh"
