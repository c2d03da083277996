"""Databases for tests: each test gets a fresh one, once for each engine. And how the tests are run."""

import gc
import os
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from tests import databases, distribution
from tests.postgres_server import NoServer, PostgresServer

from teraflock.base.clock import SystemClock
from teraflock.storage.database import Database
from teraflock.storage.open import open_database

# A machine that is busy is no fault of the code: no test fails for taking long. Each run tries other examples, so the
# number of those that a property tries by default is for the many runs together.
settings.register_profile(
    "project", deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("project")

databases.install()

gc.disable()  # until all tests are collected, which creates a million objects and no garbage

# Bytecode is kept whatever the environment says: hundreds of tests start `tera` anew, and each worker loads all tests.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Temporary folders are in memory where there is room: databases sync each commit, and a busy disk takes its time.
MEMORY = Path("/dev/shm")
MEMORY_BYTES_MIN = 4 << 30
if os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > MEMORY_BYTES_MIN:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))

# CI ends a run that takes too long, without any result. So it says, in Unix time, until when long tests may start.
LONG_TESTS_UNTIL = float(os.environ.get("TERA_LONG_TESTS_UNTIL", "inf"))

# A shell ignores SIGINT in what it starts in the background, and children inherit that: tests of Ctrl-C would wait.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        parameters = getattr(getattr(item, "callspec", None), "params", {})
        if parameters.get("database_address") == "postgres" and distribution.is_long_on_postgres(item.nodeid):
            item.add_marker(pytest.mark.long("on PostgreSQL, too"))
        for mark in item.iter_markers("long"):
            if not mark.args:
                raise pytest.UsageError(f'{item.nodeid}: say why it is long: `long("reason")`')
    items.sort(key=lambda item: distribution.order(item.nodeid))


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Keep content out of ids: packed bytes contain the time, and all workers must collect the same ids."""
    return argname if isinstance(val, bytes) else None


def pytest_collection_finish() -> None:
    """Ten thousand tests are never garbage: they are looked at no more."""
    gc.freeze()
    gc.enable()


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("long") and time.time() > LONG_TESTS_UNTIL:
        pytest.skip("no time left for long tests (TERA_LONG_TESTS_UNTIL)")
    databases.choose(item.nodeid)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    used = os.times()
    own, children = used.user + used.system, used.children_user + used.children_system
    terminalreporter.line(
        f"processor time: {own + children:.0f} s; of daemons that outlive their parent nothing is known"
    )
    if path := os.environ.get("TERA_FAILED_TESTS"):  # scripts/test runs them again
        reports = [each for kind in ("failed", "error") for each in terminalreporter.getreports(kind)]
        Path(path).write_text("".join(f"{name}\n" for name in distribution.to_run_again(reports)))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object:
    return distribution.scheduler(config, log)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    return distribution.workers()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    try:
        server = PostgresServer()
    except NoServer as reason:
        pytest.skip(str(reason))
    yield server
    server.stop()


@pytest.fixture
def migrated() -> None:
    """Whoever asks for this gets databases that have all their tables from the start: copies are quicker."""


@pytest.fixture(scope="session")
def sqlite_with_tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sqlite") / "tera.db"
    open_database(str(path), SystemClock()).close()
    return path


@pytest.fixture
def sqlite_address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if "migrated" in request.fixturenames:
        shutil.copyfile(request.getfixturevalue("sqlite_with_tables"), tmp_path / "tera.db")
    return f"sqlite:///{tmp_path / 'tera.db'}"


@pytest.fixture
def postgres_address(request: pytest.FixtureRequest, postgres_server: PostgresServer) -> Iterator[str]:
    with postgres_server.fresh(migrated="migrated" in request.fixturenames) as address:
        yield address


@pytest.fixture(params=["sqlite", "postgres"])
def database_address(request: pytest.FixtureRequest) -> str:
    """The address of an empty database, once for each engine."""
    address: str = request.getfixturevalue(f"{request.param}_address")
    return address


@pytest.fixture
def database(migrated: None, database_address: str) -> Iterator[Database]:
    """A database with all its tables, once for each engine."""
    database = open_database(database_address, SystemClock())
    yield database
    database.close()
