"""What a command that speaks to a server must not load: the server's own parts, and storage."""

import subprocess
import sys

import pytest

HEAVY = (
    "numpy",
    "psycopg",
    "asyncio",
    "sqlite3",
    "litestar",
    "uvicorn",
    "yaml",
    "difflib",
    "tomllib",
    "pynvml",
)


@pytest.mark.parametrize("module", ["listing", "launching", "showing", "entering", "lifecycle", "running"])
def test_a_command_of_the_cloud_starts_light(module: str) -> None:
    code = f"import sys, teraflock.cli.cloud.{module}, teraflock.client; print('\\n'.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "click" in loaded
    assert sorted(name for name in HEAVY if name in loaded) == []
