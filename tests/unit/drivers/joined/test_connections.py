"""Connections between a server and a joined host: who is let in, and what happens when either end fails."""

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import cast

import pytest
from msgspec.structs import replace
from tests.contract.driver.grounds import STAGES, Ground
from tests.contract.driver.joined_ground import AUTHORITY, JoinedHost, host_identity
from tests.contract.driver.joined_ground import NOW as AT
from tests.contract.driver.simulated_ground import simulated_ground

from teraflock.base.errors import TeraflockError
from teraflock.drivers.joined.authority import Authority, Identity, client_context, host_context
from teraflock.drivers.joined.calling import Links
from teraflock.drivers.joined.channel import Channel
from teraflock.drivers.joined.driver import JoinedDriver
from teraflock.drivers.joined.frames import Hello, HostCall, Upgrade, failed, raised
from teraflock.drivers.joined.methods import METHODS
from teraflock.drivers.joined.serving import STRANGERS_MAX
from teraflock.drivers.joined.strangers import Strangers
from teraflock.drivers.joined.upgrading import upgrade
from teraflock.drivers.lxd.errors import EngineTaken
from teraflock.drivers.simulated.engine import SimulatedEngine
from teraflock.fleet.model import GpuReport, HostReport
from teraflock.fleet.telemetry.model import CardReading, GuestCounters, HostReading
from teraflock.instance.driver import Capability, ComputeDriver, Seen, Sighting
from teraflock.instance.ending import StillEnding
from teraflock.instance.engine_errors import (
    BadCredentials,
    EngineBusy,
    EngineDown,
    EngineFailed,
    EngineRefused,
    NoRoom,
)
from teraflock.instance.join.model import Package
from teraflock.instance.model import InstanceId


@pytest.fixture
def ground(tmp_path: Path) -> Iterator[Ground]:
    with simulated_ground("memory", tmp_path) as found:
        yield found


@contextmanager
def hosting(driver: object) -> Iterator[JoinedHost]:
    name = driver.hosts()[0].name if isinstance(driver, SimulatedEngine) else "lab2"
    host = JoinedHost(cast("ComputeDriver", driver), name)
    yield host
    host.kill()


def asked(links: Links) -> bool:
    try:
        cast("ComputeDriver", JoinedDriver(links.to.name, links)).hosts()
    finally:
        links.close()
    return True


def test_every_method_of_the_protocol_has_a_call() -> None:
    assert {"hosts", "create", "enforce", "run", "file", "open_terminal", "link", "sightings"} <= set(METHODS)
    assert all(hasattr(JoinedDriver, name) for name in METHODS)


def test_only_the_server_of_the_installation_gets_in(ground: Ground) -> None:
    stranger = Authority(lambda purpose: purpose.encode().ljust(32)[:32])
    mixed = Identity(
        certificate=stranger.server.certificate, key=stranger.server.key, authority=AUTHORITY.certificate
    )
    with hosting(ground.driver) as host:
        assert asked(host.links())
        for identity in (mixed, host_identity("other-host")):
            with pytest.raises(EngineDown):
                asked(host.links(identity))


class Liar:
    """A host that reports another host, and a command instead of its address."""

    site, simulated, capabilities = "lab2", True, frozenset[Capability]()

    def hosts(self) -> tuple[HostReport, ...]:
        cards = tuple(
            GpuReport(slot=f"{number}", gpu="h200", name="H200", memory_bytes=1) for number in range(2000)
        )
        own = HostReport(
            name="lab2",
            address="-oProxyCommand=x\n",
            vcpus=8,
            ram_bytes=1 << 40,
            disk_bytes=1 << 40,
            gpus=cards,
        )
        return (replace(own, name="lab1"), own, replace(own, address="203.0.113.66"))


def test_a_host_reports_only_itself_at_its_known_address() -> None:
    with hosting(Liar()) as host:
        (found,) = host.joined().hosts()
    assert (found.name, found.address, len(found.gpus)) == ("lab2", "127.0.0.1", 1024)


def test_a_host_with_another_certificate_gets_no_call(ground: Ground) -> None:
    with hosting(ground.driver) as host:
        links = host.links()
        host.kill()
        host.identity = host_identity("impostor")
        host.start()
        with pytest.raises(BadCredentials):
            asked(links)


def test_a_host_with_another_version_says_so(ground: Ground) -> None:
    with (
        hosting(ground.driver) as host,
        pytest.raises(EngineDown, match="runs version 1, and the server runs 2"),
    ):
        asked(host.links(version="2"))


@pytest.mark.parametrize("sent", [b"GET / HTTP/1.1\r\n\r\n", b"\xff" * 64, b"\0\0\0\x01\xc1", b""])
def test_garbage_ends_a_connection_and_nothing_else(ground: Ground, sent: bytes) -> None:
    with hosting(ground.driver) as host:
        with socket.create_connection(("127.0.0.1", host.port), 5) as raw:
            raw.sendall(sent)
        context = client_context(AUTHORITY.server)
        with (
            socket.create_connection(("127.0.0.1", host.port), 5) as raw,
            context.wrap_socket(raw) as sock,
        ):
            sock.sendall(sent or b"\0")
            if len(sent) >= 4:
                assert sock.recv(1) == b"", "a trusted client that sends garbage is cut off"
        assert asked(host.links())


def test_a_call_with_wrong_arguments_is_refused(ground: Ground) -> None:
    with hosting(ground.driver) as host:
        links = host.links()
        for method, arguments in (
            ("look", b"\xc0"),
            ("__init__", b"\x80"),
            ("_known", b"\x80"),
            ("nothing", b""),
        ):
            with pytest.raises(EngineRefused), links.borrowed() as loan:
                links.call(loan, method, arguments)
        links.close()


def test_errors_arrive_as_their_own_class() -> None:
    sent: list[tuple[Exception, type[TeraflockError]]] = [
        (NoRoom("full", hint="wait", context={"pool": 1}), NoRoom),
        (EngineTaken("taken"), EngineTaken),
        (StillEnding("ending", over_at=AT), StillEnding),
        (ValueError("a secret"), EngineFailed),
    ]
    for error, kind in sent:
        found = raised(failed(error))
        assert type(found) is kind
        assert "a secret" not in found.sentence
    unknown = failed(EngineBusy("busy"))
    renamed = type(unknown)(kinds=("FromTheFuture", *unknown.kinds), sentence="busy")
    assert type(raised(renamed)) is EngineBusy


class Stuck:
    """A driver whose calls wait until the test lets them go on."""

    simulated = True
    capabilities = frozenset[str]()

    def __init__(self) -> None:
        self.begun = threading.Semaphore(0)
        self.go_on = threading.Event()
        self.deleted: list[object] = []

    def delete(self, handle: object) -> None:
        self.begun.release()
        assert self.go_on.wait(30)
        self.deleted.append(handle)

    def hosts(self) -> tuple[object, ...]:
        assert self.go_on.wait(30)
        return ()


def test_an_engine_that_hangs_counts_as_down() -> None:
    """Its host program is alive and says so, which must not keep the server waiting forever."""
    stuck = Stuck()
    with hosting(stuck) as host:
        links = host.links()
        links._seconds = iter(range(0, 10**6, 100)).__next__
        with pytest.raises(EngineDown) as found:
            asked(links)
        assert "hangs in `hosts`" in str(found.value.context["reason"])
        stuck.go_on.set()


def test_a_second_change_of_an_instance_waits_for_the_first(ground: Ground) -> None:
    stuck = Stuck()
    first, second = ground.machine().handle, ground.machine().handle
    with hosting(stuck) as host:
        driver = host.joined()
        threads = [threading.Thread(target=driver.delete, args=(each,)) for each in (first, second)]
        for each in threads:
            each.start()
        for _ in threads:  # different instances do not wait for each other
            assert stuck.begun.acquire(timeout=30)
        with pytest.raises(EngineBusy):
            driver.delete(first)
        stuck.go_on.set()
        for each in threads:
            each.join()
        driver.delete(first)
        assert len(stuck.deleted) == 3
        cast("JoinedDriver", driver).close()


def test_a_call_is_finished_although_the_server_died(ground: Ground) -> None:
    stuck, handle = Stuck(), ground.machine().handle
    with hosting(stuck) as host:
        links = host.links()
        with links.borrowed() as loan:
            arguments = METHODS["delete"].packed(handle)
            loan.channel.send(HostCall(method="delete", arguments=arguments), seconds_max=5)
            assert stuck.begun.acquire(timeout=30)
        stuck.go_on.set()
        driver = host.joined()
        while True:
            try:
                driver.delete(handle)
                break
            except EngineBusy:
                continue
        assert stuck.deleted == [handle, handle]
        cast("JoinedDriver", driver).close()


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_launch_continues_after_the_host_program_was_killed(ground: Ground, stage: str, when: str) -> None:
    """Kill the host program around each call of a launch: the server sees `EngineDown`, and repeats the call."""
    with hosting(ground.driver) as host:
        driver = host.joined()
        cast("JoinedDriver", driver).links._seconds = iter(
            range(0, 10**6, 100)
        ).__next__  # pauses pass at once
        remote = Ground(driver, ground.around)
        machine = remote.machine()
        for each in STAGES:
            if each == stage:
                if when == "after":
                    remote.advance(machine, each)
                host.kill()
                with pytest.raises(EngineDown):
                    driver.look(machine.handle)
                host.start()
            remote.advance(machine, each)
        seen = driver.look(machine.handle)
        assert seen is not None
        assert seen.seen == Seen.RUNNING
        remote.clear()
        cast("JoinedDriver", driver).close()


def test_a_host_that_cannot_be_reached_is_not_asked_for_every_call(ground: Ground) -> None:
    with hosting(ground.driver) as host:
        links = host.links()
        host.kill()
        times = [0.0]
        links._seconds = lambda: times[-1]
        attempts = 0

        def refuse() -> Channel:
            nonlocal attempts
            attempts += 1
            raise ConnectionRefusedError

        links._connected = refuse  # type: ignore[method-assign]
        for now in (0.0, 0.1, 0.2, 0.6, 1.0, 1.1, 1.7):
            times.append(now)
            with pytest.raises(EngineDown):
                asked(links)
        assert attempts == 4, "at 0, 0.1 (the first pause is zero), 0.6 and 1.7"


def test_a_file_that_is_not_read_to_its_end_leaves_no_rest(ground: Ground) -> None:
    with hosting(ground.driver) as host:
        driver = host.joined()
        remote = Ground(driver, ground.around)
        machine = remote.up()
        remote.words(machine, "tee", "/root/large", stdin=b"x" * 1_000_000)
        with driver.file(machine.handle, "/root/large") as found:
            assert found.size_bytes == 1_000_000
            assert found.content is not None
            next(found.content)
        with driver.file(machine.handle, "/root/large") as found:
            assert sum(map(len, found.content or ())) == 1_000_000
        assert driver.look(machine.handle) is not None
        remote.clear()
        cast("JoinedDriver", driver).close()


def test_a_plain_connection_without_a_handshake_does_not_block_others(ground: Ground) -> None:
    with hosting(ground.driver) as host:
        silent = [socket.create_connection(("127.0.0.1", host.port), 5) for _ in range(20)]
        assert asked(host.links())
        for each in silent:
            each.close()


def test_strangers_who_open_many_connections_close_only_their_own(ground: Ground) -> None:
    """Some say nothing, others send a handshake byte by byte: the server still gets in, and they are cut off."""
    with hosting(ground.driver) as host:
        place, source = ("127.0.0.1", host.port), ("127.0.0.2", 0)
        many = [socket.create_connection(place, 5, source) for _ in range(3 * STRANGERS_MAX)]
        for each in many[-STRANGERS_MAX:]:
            each.sendall(b"\x16\x03\x01")  # the first bytes of a handshake
        assert asked(host.links())
        assert many[0].recv(1) == b"", "the oldest is closed for the newest"
        for each in many:
            each.close()


def test_a_handshake_that_proceeds_slowly_ends() -> None:
    ours, theirs = socket.socketpair()
    strangers = Strangers(1, seconds_max=0.1)
    strangers.add(ours, "192.0.2.1")
    slowly = threading.Thread(target=lambda: [theirs.send(b"\x16") for _ in range(3)])
    slowly.start()
    with pytest.raises((TimeoutError, ssl.SSLError)):
        strangers.secured(ours, host_context(host_identity("lab2")))
    slowly.join()
    theirs.close()


def test_the_address_with_the_most_connections_loses_one() -> None:
    strangers = Strangers(3, seconds_max=1)
    pairs = [socket.socketpair() for _ in range(5)]
    for (ours, _), source in zip(pairs, ("honest", "flood", "flood", "flood", "flood"), strict=True):
        strangers.add(ours, source)
    for _, theirs in pairs:
        theirs.settimeout(0.05)
    closed = []
    for _, theirs in pairs:
        try:
            closed.append(theirs.recv(1) == b"")
        except TimeoutError:
            closed.append(False)
    assert closed == [False, True, True, False, False]
    with pytest.raises(ConnectionError):
        strangers.secured(pairs[1][0], host_context(host_identity("lab2")))
    for pair in pairs:
        for each in pair:
            each.close()


class Flood(Liar):
    """A host that invents guests, on itself and elsewhere, and an end of each."""

    def sightings(self) -> tuple[Sighting, ...]:
        made = [
            Sighting(instance_id=InstanceId(f"ins_{number}"), host=host, seen=Seen.RUNNING, leaving_at=AT)
            for number in range(11_000)
            for host in ("lab2", "lab1")
        ]
        zoneless = replace(made[0], started_at=AT.replace(tzinfo=None))
        return (
            Sighting(instance_id=InstanceId("x" * 300), host="lab2", seen=Seen.RUNNING),
            zoneless,
            *made,
        )

    def hosts(self) -> tuple[HostReport, ...]:
        (_, own, _) = super().hosts()
        bad = [replace(own.gpus[0], name="x" * 300), replace(own.gpus[0], slot="\x1b[2J")]
        return (replace(own, gpus=(*bad, own.gpus[0])),)

    def readings(self) -> tuple[HostReading, ...]:
        cards = [CardReading(slot=f"{number}") for number in range(1100)]
        bad = [CardReading(slot="x" * 300), CardReading(slot="0", name="\x1b[2J")]
        guests = [GuestCounters(instance_id="ins_1"), GuestCounters(instance_id="x" * 300)]
        own = HostReading(host="lab2", now=AT, cards=(*bad, *cards), guests=tuple(guests))
        return (replace(own, host="lab1"), replace(own, now=AT.replace(tzinfo=None)), own)

    def images(self) -> tuple[str, ...]:
        return ("x" * (17 << 20),)


def test_what_a_host_says_is_bounded() -> None:
    with hosting(Flood()) as host:
        driver = host.joined()
        seen = list(driver.sightings())
        assert len(seen) == 10_000
        assert {each.host for each in seen} == {"lab2"}
        assert {(each.leaving_at, each.started_at) for each in seen} == {(None, None)}
        (reading,) = driver.readings()
        assert (reading.host, len(reading.cards), len(reading.guests)) == ("lab2", 1022, 1)
        assert len(driver.hosts()[0].gpus) == 1
        with pytest.raises(EngineDown) as found:
            driver.images()
        assert "announced a message of" in str(found.value.context["reason"])
        cast("JoinedDriver", driver).close()


def test_a_host_that_works_forever_counts_as_down(ground: Ground) -> None:
    stuck = Stuck()
    with hosting(stuck) as host:
        links = host.links()
        links._seconds = iter(range(0, 10**9, 4000)).__next__
        with pytest.raises(EngineDown) as found:
            cast("ComputeDriver", JoinedDriver("lab2", links)).delete(ground.machine().handle)
        assert "hangs in `delete`" in str(found.value.context["reason"])
        stuck.go_on.set()
        links.close()


def test_a_client_without_a_certificate_is_cut_off(ground: Ground) -> None:
    with hosting(ground.driver) as host:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        with (
            socket.create_connection(("127.0.0.1", host.port), 5) as raw,
            context.wrap_socket(raw) as sock,
            pytest.raises(ssl.SSLError, match="(?i)certificate.required"),
        ):
            Channel(sock).receive(Hello, seconds_max=5)


def test_a_host_of_another_version_is_upgraded(ground: Ground) -> None:
    package = Package(version="2", content=bytes(range(256)) * 9000)
    got: list[tuple[Upgrade, bytes]] = []

    def install(request: Upgrade, content: bytes) -> None:
        if not got:
            got.append((request, content))
            raise EngineRefused("The disk is full")
        got.append((request, content))
        host.version = "2"
        threading.Timer(0.1, restart).start()

    def restart() -> None:
        host.kill()
        host.start()

    with hosting(ground.driver) as host:
        host.install = install
        host.kill()
        host.start()
        links = host.links(version="2")
        with pytest.raises(EngineRefused, match="The disk is full"):
            upgrade(links, package)
        assert upgrade(links, package) == "1"
        assert got[1] == (Upgrade(version="2", digest=sha256(package.content).hexdigest()), package.content)
        assert asked(links)
        assert upgrade(links, package) == "2", "it has the version already"
        assert len(got) == 2


def test_a_host_that_does_not_come_back_is_reported(ground: Ground) -> None:
    package = Package(version="2", content=b"x")
    with hosting(ground.driver) as host:
        host.install = lambda request, content: None
        host.kill()
        host.start()
        with pytest.raises(EngineRefused, match="still runs 1"):
            upgrade(host.links(version="2"), package, restart_seconds_max=0.05)
        host.install = None
        host.kill()
        host.start()
        with pytest.raises(EngineDown, match="broke during the upgrade"):
            upgrade(host.links(version="2"), package)
