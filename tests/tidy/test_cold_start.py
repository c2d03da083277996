"""Modules that a cold command must not import. `make bench` measures times; this test checks the modules."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

IMPORTS_IN_FUNCTIONS_MAX = 213
"""What is imported only where it is needed: each saves a common command milliseconds, or is an optional package. Move
others to the top of their files, and lower this number when there are fewer."""
HEAVY = (
    "numpy",
    "psycopg",
    "asyncio",
    "http",
    "urllib.request",
    "email",
    "ssl",
    "fractions",
    "difflib",
    "tomllib",
)


def loaded_by(arguments: list[str], home: Path) -> set[str]:
    """The modules in memory when `tera` exits."""
    code = (
        "import sys, teraflock.cli.main as m\n"
        f"sys.argv = ['tera', *{arguments!r}]\n"
        "try: m.run()\n"
        "finally: print('\\n'.join(sys.modules), file=sys.stderr)\n"
    )
    kept = {name: value for name, value in os.environ.items() if name != "COLUMNS"}  # set by pytest-xdist
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**kept, "TERA_HOME": str(home)},
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stderr.split())


@pytest.mark.parametrize(
    "arguments", [["--help"], ["--version"], ["offers", "--gpu", "A100", "--json"], ["gpus"]], ids=" ".join
)
def test_a_cold_command_imports_no_heavy_modules(arguments: list[str], tmp_path: Path) -> None:
    loaded_by(arguments, tmp_path)  # the first run creates the database
    loaded = loaded_by(arguments, tmp_path)
    assert "click" in loaded
    assert sorted(name for name in HEAVY if name in loaded) == []


def test_help_imports_no_database(tmp_path: Path) -> None:
    assert "sqlite3" not in loaded_by(["--help"], tmp_path)
    assert not any(tmp_path.iterdir())


def test_an_estimate_imports_no_pathlib_and_no_zipfile(tmp_path: Path) -> None:
    loaded = loaded_by(["estimate", "resnet50", "--batch", "64"], tmp_path)
    assert loaded & {"pathlib", "shutil", "csv", "teraflock.estimate.answer"} == {
        "csv",
        "teraflock.estimate.answer",
    }


def test_a_server_starts_without_modules_that_only_some_requests_need() -> None:
    """Numpy and cryptography together take 20 MB and a seventh of the time to the first page."""
    code = (
        "import sys, teraflock.app.console, teraflock.app.http_server, teraflock.app.wiring\n"
        "print(*sorted({'numpy', 'cryptography', 'fpdf', 'botocore'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_few_imports_are_inside_functions() -> None:
    inside = {
        f"{path}:{node.lineno}"
        for path in (Path(__file__).parents[2] / "src").rglob("*.py")
        for function in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom)
    }
    assert len(inside) <= IMPORTS_IN_FUNCTIONS_MAX
