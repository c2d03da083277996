"""Hosts that join: tokens, refusals with their reasons, repeated requests, removal. On both databases."""

import dataclasses
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace
from tests.contract.driver.joined_ground import derive
from tests.faults.installation import Installation

from teraflock.app.joining.join import Ticket, ask, parse_ticket
from teraflock.app.joining.listener import CONNECTIONS_MAX, JoinPort
from teraflock.app.settings import Settings
from teraflock.base.clock import FixedClock
from teraflock.base.errors import BadInput, Conflict, NotFound, Refused, TeraflockError, Unavailable
from teraflock.drivers.joined.authority import fingerprint, new_key, request_for
from teraflock.drivers.simulated.world import MemoryWorld
from teraflock.fleet import store as fleet
from teraflock.fleet.left_behind import store as left_behind
from teraflock.fleet.model import HostId, HostReport, HostState
from teraflock.instance.join.model import Invited, JoinAnswer, JoinRequest, Package
from teraflock.instance.join.service import JoinService
from teraflock.instance.site import store as sites
from teraflock.instance.store import taken_addresses
from teraflock.instance.volume import store as volumes
from teraflock.instance.volume.model import Volume, VolumeId
from teraflock.storage.database import Database

START = datetime(2026, 11, 15, tzinfo=UTC)
GPU = "GPU-5f3c1a52-0000-4000-8000-000000000001"


@dataclasses.dataclass
class Ground:
    installation: Installation
    door: JoinPort
    joins: JoinService
    database: Database

    @property
    def clock(self) -> FixedClock:
        return self.installation.clock

    def invite(self, **options: object) -> Invited:
        return self.joins.invite(self.installation.tenant.actor, **options)  # type: ignore[arg-type]

    def request(self, invited: Invited, **changes: object) -> JoinRequest:
        request = JoinRequest(
            token=invited.token,
            version="1",
            now=self.clock.now(),
            hostname="Lab2.example.org",
            port=8732,
            certificate_request=request_for(new_key(), "lab2"),
            encrypts=True,
        )
        return replace(request, **changes)

    def join(self, invited: Invited | None = None, **changes: object) -> JoinAnswer:
        return self.joins.join(self.request(invited or self.invite(), **changes), "192.0.2.7")

    def site_names(self) -> list[str]:
        with self.database.read() as tx:
            return [record.name for record in sites.records(tx)]


@pytest.fixture
def ground(database: Database) -> Iterator[Ground]:
    installation = Installation(database, MemoryWorld(), FixedClock(START))
    door = JoinPort(derive, Settings(join_listen="127.0.0.1:0"))
    joins = JoinService(
        database,
        installation.clock,
        installation.engines,
        door,
        version="1",
        mark="m4rk",
        package=lambda: Package(version="1", content=b""),
        own_cards=lambda: {"GPU-own": "here"},
    )
    door.join = joins.join
    yield Ground(installation, door, joins, database)
    door.close()


def ticket_of(invited: Invited) -> Ticket:
    return parse_ticket(f"{invited.token}@{invited.place.server}#{invited.place.fingerprint}")


def test_a_host_joins_over_tls_and_becomes_a_site(ground: Ground) -> None:
    invited = ground.invite(name="lab3", address="192.0.2.9")
    answer = ask(ticket_of(invited), ground.request(invited))
    assert (answer.name, answer.address, answer.mark) == ("lab3", "192.0.2.9", "m4rk")
    with ground.database.read() as tx:
        record = next(each for each in sites.records(tx) if each.name == "lab3")
    assert record.kind == "joined"
    assert record.options["fingerprint"] == fingerprint(answer.certificate)
    with pytest.raises(Refused, match="already used by `lab3`"):
        ask(ticket_of(invited), ground.request(invited))


def test_a_host_has_its_own_name_and_the_address_it_came_from(ground: Ground) -> None:
    answer = ground.join()
    assert (answer.name, answer.address) == ("lab2", "192.0.2.7")
    assert ground.join(hostname="lab4", address="192.0.2.8").address == "192.0.2.8"


def test_the_token_is_not_sent_to_another_server(ground: Ground) -> None:
    invited = ground.invite()
    sent: list[JoinRequest] = []

    def noted(request: JoinRequest, source: str) -> JoinAnswer:
        sent.append(request)
        return ground.joins.join(request, source)

    ground.door.join = noted
    ticket = ticket_of(invited)
    with pytest.raises(Refused, match="Another server answers"):
        ask(Ticket(ticket.token, ticket.server, ticket.port, "0" * 64), ground.request(invited))
    assert sent == []
    ground.door.close()
    with pytest.raises(Unavailable):
        ask(ticket, ground.request(invited))


def test_strangers_do_not_keep_a_host_from_joining(ground: Ground) -> None:
    """Connections that say nothing, plain garbage, and a message that announces four gigabytes."""
    invited = ground.invite()
    ticket = ticket_of(invited)
    place, source = (ticket.server, ticket.port), ("127.0.0.2", 0)
    silent = [socket.create_connection(place, 5, source) for _ in range(3 * CONNECTIONS_MAX)]
    silent[-1].sendall(b"GET / HTTP/1.1\r\n\r\n")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with socket.create_connection(place, 5) as raw, context.wrap_socket(raw) as tls:
        tls.sendall(b"\xff" * 64)
        with suppress(ConnectionError):
            assert tls.recv(1) == b"", "it is cut off before anything of that size is read"
    assert ask(ticket, ground.request(invited)).name == "lab2"
    for each in silent:
        each.close()


def test_a_stolen_certificate_of_a_removed_host_opens_nothing(ground: Ground) -> None:
    """Its token is used up, and its key gets no other name. The connections are tested with the host program."""
    request = ground.request(ground.invite())
    name = ground.joins.join(request, "192.0.2.7").name
    ground.joins.remove(ground.installation.tenant.actor, name)
    with pytest.raises(Refused, match="was already used"):
        ground.joins.join(request, "192.0.2.7")
    assert name not in ground.site_names()


def test_refusals_have_their_reason_and_change_nothing(ground: Ground) -> None:
    invited = ground.invite()
    now = ground.clock.now()
    ground.join(hostname="first", cards=(GPU,))
    before = ground.site_names()
    wrong: list[tuple[dict[str, object], type[TeraflockError], str]] = [
        ({"token": "0" * 40}, Refused, "not valid"),
        ({"version": "0.9"}, Refused, "has version 0.9, and the server has 1"),
        ({"now": now + timedelta(minutes=5)}, Refused, "5 minutes ahead of"),
        ({"now": now - timedelta(minutes=5)}, Refused, "5 minutes behind"),
        ({"cards": (GPU,)}, Conflict, "belongs to the host `first`"),
        ({"cards": ("GPU-own",)}, Conflict, "belongs to the host `here`"),
        ({"cards": ("GPU 1; drop",)}, BadInput, "list of GPUs"),
        ({"encrypts": False}, Refused, "cannot encrypt"),
        ({"hostname": "first.example.org"}, Conflict, "already a host or site `first`"),
        ({"hostname": "simulated-0001"}, Conflict, "already a host or site"),
        ({"hostname": "-bad-\n"}, BadInput, "not a valid name"),
        ({"address": "example.org; id"}, BadInput, "not an IP address"),
        ({"port": 0}, BadInput, "not a port"),
        ({"certificate_request": "nothing"}, BadInput, "certificate request"),
    ]
    for change, kind, words in wrong:
        with pytest.raises(kind, match=words):
            ground.join(invited, **change)
    assert ground.site_names() == before
    ground.clock.move(timedelta(hours=1))
    with pytest.raises(Refused, match="expired at 2026-11-15 01:00 UTC"):
        ground.join(invited, now=ground.clock.now())
    assert not ground.joins.has_open_invitations()


def test_a_host_without_encryption_joins_over_a_trusted_wire(ground: Ground) -> None:
    assert ground.join(ground.invite(trusted_wire=True), encrypts=False).name == "lab2"


def test_a_host_that_crashed_repeats_its_request(ground: Ground) -> None:
    request = ground.request(ground.invite())
    first = ground.joins.join(request, "192.0.2.7")
    again = ground.joins.join(replace(request, now=request.now + timedelta(days=9)), "192.0.2.66")
    assert again == first
    assert ground.site_names().count("lab2") == 1


def test_one_token_lets_one_of_many_hosts_in(ground: Ground) -> None:
    invited = ground.invite()
    requests = [ground.request(invited, hostname=f"lab{number}") for number in range(6)]
    done: list[str] = []

    def attempt(request: JoinRequest) -> None:
        try:
            done.append(ground.joins.join(request, "192.0.2.7").name)
        except Refused:
            done.append("")

    threads = [threading.Thread(target=attempt, args=(each,)) for each in requests]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(done) == 6
    assert len([name for name in done if name]) == 1


def test_only_a_drained_and_empty_host_is_removed(ground: Ground) -> None:
    actor, name = ground.installation.tenant.actor, ground.join().name
    report = HostReport(name=name, address="192.0.2.7", vcpus=4, ram_bytes=1 << 34, disk_bytes=1 << 40)

    def reported(id: str) -> None:
        ground.database.write(
            lambda tx: fleet.put_report(tx, name, report, HostId(id), simulated=False, now=ground.clock.now())
        )

    reported("hst_one")
    with pytest.raises(Conflict, match="still accepts new instances"):
        ground.joins.remove(actor, name)
    ground.database.write(lambda tx: fleet.set_drained(tx, HostId("hst_one"), True))
    project, now = ground.installation.tenant.project.id, ground.clock.now()
    ground.database.write(
        lambda tx: left_behind.note(tx, "ins_moved", "hst_one", project, ("10.128.0.99",), now)
    )
    volume = Volume(
        id=VolumeId("vol_one"), project_id=project, name="data", size_bytes=1, site=name, host_id="hst_one",
        created_at=now, created_by="mem_one", disk_id="vol_one",
    )  # fmt: skip
    ground.database.write(lambda tx: volumes.insert(tx, volume))
    with pytest.raises(Conflict, match="still has volumes: 1") as found:
        ground.joins.remove(actor, name)
    assert "tera volume recover" in found.value.hint
    ground.database.write(lambda tx: volumes.remove(tx, volume.id))
    assert ground.joins.remove(actor, "hst_one") == name
    with ground.database.read() as tx:
        assert "10.128.0.99" not in taken_addresses(tx, project), (
            "the removed host has no link to the network"
        )
    assert name not in ground.site_names()
    with ground.database.read() as tx:
        assert name not in {host.name for host in fleet.outlines(tx)}
        kept = fleet.host(tx, name)
    assert kept is not None
    assert (kept.state, kept.gone_at) == (HostState.GONE, ground.clock.now()), "its bills still find it"
    with pytest.raises(Refused, match="did not join"):
        ground.joins.remove(actor, "simulated-0001")
    with pytest.raises(NotFound):
        ground.joins.remove(actor, "nothing")
    assert ground.join().name == name, "it may join again"
    reported("hst_two")
    with ground.database.read() as tx:
        back = fleet.host(tx, name)
    assert back is not None
    assert (back.id, back.state, back.gone_at) == ("hst_one", HostState.READY, None)


def test_a_host_that_never_answered_is_removed(ground: Ground) -> None:
    name = ground.join().name
    assert ground.joins.remove(ground.installation.tenant.actor, name) == name
    assert name not in ground.site_names()


@pytest.mark.parametrize(
    "word",
    [
        "",
        "token",
        "token@server",
        "@server#" + "0" * 64,
        "t@s#" + "0" * 63,
        "t@s#" + "G" * 64,
        "t@#" + "0" * 64,
    ],
)
def test_a_damaged_word_is_refused(word: str) -> None:
    with pytest.raises(BadInput):
        parse_ticket(word)


def test_words_with_and_without_a_port_are_read() -> None:
    print_ = "0" * 64
    assert parse_ticket(f"t@192.0.2.1#{print_}") == Ticket("t", "192.0.2.1", 8733, print_)
    assert parse_ticket(f" t@[2001:db8::1]:99#{print_}\n") == Ticket("t", "2001:db8::1", 99, print_)
