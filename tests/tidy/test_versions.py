"""Every visible change of an instance's row increments its version, because cached pages depend on it."""

import re
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "src" / "teraflock" / "instance"
SOURCE = "".join(path.read_text("utf-8") for path in sorted(FOLDER.rglob("store.py")))
UPDATES = re.compile(r"UPDATE instance SET ([^\"]*(?:\"\s*\"[^\"]*)*)")


def test_every_change_of_an_instance_increments_its_version() -> None:
    found = UPDATES.findall(SOURCE)
    assert len(found) >= 4
    silent = [text for text in found if "version = version + 1" not in text]
    assert [text for text in silent if not text.startswith("lease_owner = ")] == []
