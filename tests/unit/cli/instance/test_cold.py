"""Commands that talk to a server must not import the server or storage."""

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


@pytest.mark.parametrize("module", ["list", "launch", "show", "ssh", "lifecycle", "exec"])
def test_client_commands_do_not_import_the_server(module: str) -> None:
    code = f"import sys, teraflock.cli.instance.{module}, teraflock.client; print('\\n'.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "click" in loaded
    assert sorted(name for name in HEAVY if name in loaded) == []
