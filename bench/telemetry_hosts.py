"""Measure readings of 100 joined hosts with 8 cards each: one connection and one transaction for each host, every 10 s.

The host program runs in a process of its own and plays all hosts. Its processor time, divided by 100, is what serving a
reading costs one host. Reading the cards is measured apart, with a fake NVML: the library's own work is not in it.
"""

import logging
import multiprocessing
import os
import socket
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from multiprocessing.connection import Connection
from pathlib import Path
from time import process_time
from typing import Final, cast

from tests.unit.host.fake_nvml import FakeNvml
from tests.unit.host.test_readings import busy_card

from bench.figures import Figure, Section
from bench.telemetry import BusyEngine
from teraflock.base.clock import FixedClock, SystemClock
from teraflock.drivers.joined.authority import Authority, Identity, client_context, host_context, new_key
from teraflock.drivers.joined.authority import request_for as csr
from teraflock.drivers.joined.calling import HostEndpoint, Links
from teraflock.drivers.joined.driver import JoinedDriver
from teraflock.drivers.joined.serving import HostServer
from teraflock.drivers.simulated.fleet import fleet
from teraflock.drivers.simulated.world import MemoryWorld
from teraflock.fleet.telemetry.rules import FINE_SECONDS
from teraflock.host.readings import readings_of
from teraflock.instance.driver import ComputeDriver
from teraflock.instance.engines import Engines
from teraflock.reconcile.hosts import HostLoop
from teraflock.reconcile.surroundings import Surroundings
from teraflock.reconcile.telemetry import TelemetryLoop
from teraflock.storage.open import open_database

HOSTS: Final = 100
CARDS: Final = 8
TURNS: Final = 30
SERVER_PERCENT_MAX: Final = 2.0
HOST_PERCENT_MAX: Final = 1.0
AUTHORITY: Final = Authority(lambda purpose: sha256(purpose.encode()).digest())


def measure() -> Iterator[Section]:
    logging.getLogger("teraflock").setLevel(logging.CRITICAL)
    key = new_key()
    certificate = AUTHORITY.issue(csr(key, "bench"), "bench", datetime.now(UTC))
    identity = Identity(certificate=certificate, key=key, authority=AUTHORITY.certificate)
    ours, theirs = multiprocessing.Pipe()
    host = multiprocessing.get_context("spawn").Process(target=_host, args=(theirs, identity), daemon=True)
    host.start()
    try:
        yield from _measured(ours, identity)
    finally:
        host.kill()
        host.join()


def _host(pipe: Connection, identity: Identity) -> None:
    """The host program: tell its port, then its processor time whenever it is asked."""
    clock = SystemClock()
    engine = BusyEngine(MemoryWorld(), clock, fleet(f"1x{CARDS}xV100"), mark="bench")
    listener = socket.create_server(("127.0.0.1", 0), backlog=HOSTS)
    HostServer(engine, host_context(identity), listener, now=clock.now).start()
    pipe.send(listener.getsockname()[1])
    while pipe.recv():
        pipe.send(process_time())


def _measured(pipe: Connection, identity: Identity) -> Iterator[Section]:
    port, clock = int(pipe.recv()), FixedClock(SystemClock().now())
    context = client_context(AUTHORITY.server)
    drivers = []
    for number in range(HOSTS):
        to = HostEndpoint(
            name=f"host{number}", address="127.0.0.1", port=port, fingerprint=identity.fingerprint
        )
        drivers.append(cast("ComputeDriver", JoinedDriver(to.name, Links(to, context, now=clock.now))))
    with tempfile.TemporaryDirectory() as folder:
        database = open_database(str(Path(folder) / "bench.db"), clock)
        around = Surroundings(
            database=database, clock=clock, engines=Engines(drivers), random_bytes=os.urandom
        )
        HostLoop(around).turn()
        yield _turns(pipe, TelemetryLoop(around), drivers, clock)
        for driver in drivers:
            cast("JoinedDriver", driver).close()
        database.close()


def _turns(pipe: Connection, loop: TelemetryLoop, drivers: list[ComputeDriver], clock: FixedClock) -> Section:
    pipe.send(True)
    host_began, turns = float(pipe.recv()), []
    for _ in range(TURNS):
        clock.move(timedelta(seconds=FINE_SECONDS))
        began = process_time()
        for driver in drivers:
            loop.turn_of(driver)
        turns.append(process_time() - began)
    pipe.send(True)
    served = (float(pipe.recv()) - host_began) / TURNS / HOSTS
    read = _reading_seconds()
    return Section(
        title=f"readings of {HOSTS} joined hosts × {CARDS} cards, every 10 s",
        figures=(
            _share("share of one core on the server", sum(turns) / TURNS, SERVER_PERCENT_MAX),
            _share("share of one core on a host", served + read, HOST_PERCENT_MAX),
            Figure(what="serving a reading, on a host", unit="ms", samples=(served * 1000,)),
            Figure(what=f"reading {CARDS} cards, without NVML's own work", unit="ms", samples=(read * 1000,)),
        ),
    )


def _share(what: str, seconds: float, percent_max: float) -> Figure:
    return Figure(what=what, unit="%", samples=(seconds * 100 / FINE_SECONDS,), bar=percent_max)


def _reading_seconds() -> float:
    nvml = FakeNvml(*(busy_card(number) for number in range(CARDS)))
    began = process_time()
    for _ in range(TURNS):
        readings_of(nvml, {})
    return (process_time() - began) / TURNS
