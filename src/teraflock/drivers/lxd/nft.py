"""Runs `nft`."""

import subprocess


def run(text: str) -> bool:
    """Return whether the kernel accepted the text, all of it or nothing."""
    done = subprocess.run(["nft", "-f", "-"], input=text.encode(), capture_output=True, check=False)
    return done.returncode == 0


def listing(table: str) -> str:
    """Return an `inet` table as text. Empty if it does not exist."""
    asked = ["nft", "--stateless", "list", "table", "inet", table]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else ""
