"""A tenant's day over HTTP: a real server with the simulated engine, and the typed client."""

import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.story.api_server import Server, running, tls_certificate

from teraflock.base.errors import Conflict, Forbidden, NotAuthenticated, NotFound, QuotaReached
from teraflock.client import Client
from teraflock.client.errors import NoAnswer
from teraflock.storage.open import open_database
from teraflock.wire.budget import BudgetRequest
from teraflock.wire.event import EventAnswer
from teraflock.wire.image import ImageRequest
from teraflock.wire.instance import ExecRequest, LaunchRequest, ResizeRequest
from teraflock.wire.key import KeyRequest
from teraflock.wire.member import MemberRequest
from teraflock.wire.organisation import OrganisationRequest
from teraflock.wire.project import ProjectRequest
from teraflock.wire.quota import QuotaShape
from teraflock.wire.shape import ShapeRequest
from teraflock.wire.snapshot import RestoreRequest, SnapshotRequest


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running(tmp_path_factory.mktemp("story") / "home") as server:
        server.furnish()
        yield server


def tenant(server: Server, name: str) -> str:
    with server.client() as operator:
        return operator.organisations.create(OrganisationRequest(name=name, owner=f"head@{name}")).key


def test_a_day_of_a_tenant(server: Server) -> None:
    with server.client(tenant(server, "vision")) as head:
        project = head.projects.create(ProjectRequest(name="faces"))
        student = head.members.add(MemberRequest(name="student@vision", role="member", project="faces"))
        secret = head.keys.create(
            KeyRequest(name="laptop", member=student.id, project="faces", days=30)
        ).secret
    with server.client(secret) as me:
        assert me.whoami().member_name == "student@vision"
        made = me.instances.launch(
            LaunchRequest(name="train", shape=ShapeRequest(gpu="V100"), labels={"run": "1"})
        ).items[0]
        assert made.project_id == project.id
        running_now = me.instances.wait_until(made.id, "running")
        assert running_now.simulated
        assert running_now.ssh is not None
        assert running_now.ssh.port > 0
        assert running_now.gpus
        assert (
            me.instances.exec("train", ExecRequest(command=("echo", "a b", "$(id)"))).stdout == "a b $(id)\n"
        )
        me.instances.resize("train", ResizeRequest(shape=ShapeRequest(vcpus=2)))
        assert me.instances.wait_until("train", "running").shape.vcpus == 2
        me.snapshots.create("train", SnapshotRequest(name="before"))
        me.instances.wait_until("train", "running")
        assert [each.name for each in me.snapshots.list("train")] == ["before"]
        me.snapshots.restore("train", RestoreRequest(snapshot="before"))
        me.instances.wait_until("train", "running")
        me.images.create(ImageRequest(name="ours", instance="train"))
        me.instances.wait_until("train", "running")
        me.instances.stop("train")
        stopped = me.instances.wait_until("train", "stopped")
        assert stopped.gpus == ()
        me.instances.start("train")
        me.instances.wait_until("train", "running")
        assert me.quotas.usage("faces").instances == 1
        me.snapshots.delete("train", "before")
        me.instances.delete("train")
        me.instances.wait_until_gone("train")
        gone = me.instances.list(gone=True)
        assert [each.state for each in gone] == ["gone"]
        moves = [
            event.details["to"]
            for event in me.instances.events(made.id).items
            if event.kind == "instance.moved"
        ]
        assert moves[:3] == ["queued", "starting", "running"]
        assert moves[-1] == "gone"


def test_tenants_cannot_see_each_other(server: Server) -> None:
    with server.client(tenant(server, "red")) as red, server.client(tenant(server, "blue")) as blue:
        made = red.instances.launch(LaunchRequest(name="mine")).items[0]
        red.instances.wait_until("mine", "running")
        for act in (
            blue.instances.get,
            blue.instances.start,
            blue.instances.stop,
            blue.instances.delete,
            blue.instances.log,
        ):
            for ref in ("mine", made.id):
                with pytest.raises(NotFound):
                    act(ref)
        assert blue.instances.list() == ()
        assert blue.events.page().items == ()
        with pytest.raises(Forbidden):
            blue.hosts.page()
        blue.instances.launch(LaunchRequest(name="mine"))
        assert red.instances.get("mine").id == made.id


def test_quota_is_enforced_and_reported(server: Server) -> None:
    with server.client(tenant(server, "small")) as me, server.client() as operator:
        project = me.projects.page().items[0]
        operator.quotas.set(project.id, QuotaShape(instances=1, gpus_default=0))
        me.instances.launch(LaunchRequest(name="one"))
        with pytest.raises(QuotaReached, match="instances"):
            me.instances.launch(LaunchRequest(name="two"))
        assert me.quotas.usage(project.id).quota.instances == 1


def test_a_revoked_key_stops_at_the_next_request(server: Server) -> None:
    with server.client(tenant(server, "careful")) as head:
        made = head.keys.create(KeyRequest(name="lost"))
        with server.client(made.secret) as thief:
            assert thief.whoami().organisation_name == "careful"
            head.keys.revoke(made.key.id)
            with pytest.raises(NotAuthenticated):
                thief.whoami()


def test_events_are_streamed(server: Server) -> None:
    key = tenant(server, "watcher")
    came: list[EventAnswer] = []
    with server.client(key) as me:
        last = me.instances.launch(LaunchRequest(name="first")).items[0]
        me.instances.wait_until(last.id, "running")
        seen = me.events.page().items[-1].id

        def follow() -> None:
            with server.client(key) as follower:
                for event in follower.events.follow(after=seen):
                    came.append(event)
                    if event.details.get("to") == "running" and event.details["name"] == "second":
                        return

        thread = threading.Thread(target=follow)
        thread.start()
        me.instances.launch(LaunchRequest(name="second"))
        thread.join(timeout=60)
        assert not thread.is_alive()
    moves = [event.details["to"] for event in came if event.details.get("name") == "second"]
    assert moves == ["queued", "starting", "running"]
    assert len({event.id for event in came}) == len(came)


def test_budget_events_are_streamed(tmp_path: Path) -> None:
    """Setting a budget sends an event for each reached level and for a near end."""
    came: list[EventAnswer] = []
    with running(tmp_path / "home") as server:
        server.furnish()
        key = tenant(server, "thrifty")
        with server.client() as operator:
            operator.prices.set("- {from: 2026-01-01, currency: USD, vcpu: 1000/hour}\n")
        with server.client(key) as me, server.client(key) as follower:
            made = me.instances.launch(LaunchRequest(name="dear")).items[0]
            me.instances.wait_until(made.id, "running")
            seen = me.events.page().items[-1].id
            me.budgets.set(BudgetRequest(micros=1, levels=(50, 100), hard_stop=True))
            for event in follower.events.follow(after=seen):
                came += [event] if event.kind.startswith("budget.") else []
                if len(came) == 3:  # at the same moment, so in any order
                    break
    assert {(event.kind, event.details["level"]) for event in came} == {
        ("budget.reached", 50),
        ("budget.reached", 100),
        ("budget.ending", 0),
    }
    assert all(event.details["limit_micros"] == 1 and event.details["currency"] == "USD" for event in came)


def test_large_body_gets_an_error_and_not_a_broken_connection(server: Server) -> None:
    with (
        server.client(tenant(server, "verbose")) as me,
        pytest.raises(Exception, match="larger than") as refused,
    ):
        me.instances.launch(LaunchRequest(user_data="x" * 10_000_000))
    assert getattr(refused.value, "code", "") == "body_too_large"
    assert "65,536" in getattr(refused.value, "hint", "")


def test_retry_after_kill_9_gets_the_same_instance(tmp_path: Path) -> None:
    server = Server(tmp_path / "home").start()
    try:
        server.furnish()
        with server.client() as me:
            made = me.instances.launch(LaunchRequest(name="web"), idempotency_key="once")
        server.end(signal.SIGKILL)
        server.start()
        with server.client() as me:
            assert me.instances.launch(LaunchRequest(name="web"), idempotency_key="once") == made
            assert [each.id for each in me.instances.list()] == [made.items[0].id]
            me.instances.wait_until("web", "running")
    finally:
        if server.process:
            server.end()


def test_server_stops_cleanly_with_an_open_stream(tmp_path: Path) -> None:
    server = Server(tmp_path / "home").start()
    key = server.operator_key
    with socket.create_connection(("127.0.0.1", server.port)) as stream:
        stream.sendall(
            f"GET /v1/events/stream HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n\r\n".encode()
        )
        assert b"200 OK" in stream.recv(4096)
        assert server.end() == 0
    assert not (tmp_path / "home" / "cloud" / "server.pid").exists()
    with pytest.raises(NoAnswer):
        server.client(key).health()


def _fails(server: Server) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "teraflock", "serve"],
        env=server.environment(),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode in (1, 2), done
    assert "Traceback" not in done.stderr
    return done.stderr


def test_failed_start_is_reported(tmp_path: Path) -> None:
    with running(tmp_path / "home") as server:
        assert "already running" in _fails(Server(tmp_path / "home"))
        taken = Server(tmp_path / "other", TERA_LISTEN=f"127.0.0.1:{server.port}")
        assert "cannot listen" in _fails(taken)
    assert "TLS" in _fails(Server(tmp_path / "open", TERA_LISTEN="0.0.0.0:0"))
    assert "Unknown kind of database" in _fails(Server(tmp_path / "odd", TERA_DATABASE="mysql://x"))


def test_tls_with_a_trusted_certificate(tmp_path: Path) -> None:
    cert, key = tls_certificate(tmp_path)
    server = Server(tmp_path / "home", TERA_TLS_CERT=str(cert), TERA_TLS_KEY=str(key))
    server.url = f"https://127.0.0.1:{server.port}"
    server.client = lambda *_, **__: Client(server.url, "", ca_file=str(cert))  # type: ignore[method-assign]
    server.start()
    try:
        with Client(server.url, server.operator_key, ca_file=str(cert)) as client:
            assert client.whoami().is_operator
        stranger = Client(server.url, server.operator_key, pause=lambda _: None)
        with pytest.raises(NoAnswer, match="cannot be trusted"):
            stranger.whoami()
        plain = Client(f"http://127.0.0.1:{server.port}", "", pause=lambda _: None)
        with plain, pytest.raises(NoAnswer):
            plain.health()
    finally:
        server.end()


def test_two_servers_share_one_postgresql(tmp_path: Path, postgres_address: str) -> None:
    from teraflock.base.clock import SystemClock

    open_database(postgres_address, SystemClock()).close()
    with running(tmp_path / "one", TERA_DATABASE=postgres_address) as one:
        world = str(tmp_path / "one" / "cloud" / "engine")
        (tmp_path / "two" / "cloud").mkdir(parents=True)
        (tmp_path / "two" / "cloud" / "engine").symlink_to(world)
        one.furnish()
        with running(tmp_path / "two", TERA_DATABASE=postgres_address) as two:
            key = one.operator_key
            with one.client(key) as first, two.client(key) as second:
                made = first.instances.launch(LaunchRequest(name="web", instances=3), idempotency_key="k")
                assert (
                    second.instances.launch(LaunchRequest(name="web", instances=3), idempotency_key="k")
                    == made
                )
                for instance in made.items:
                    second.instances.wait_until(instance.id, "running")
                assert len(first.instances.list()) == 3
                with pytest.raises(Conflict):
                    second.instances.launch(LaunchRequest(name="web-1"))
                key_made = first.keys.create(KeyRequest(name="k"))
                with two.client(key_made.secret) as third:
                    assert third.whoami().is_operator
                second.keys.revoke(key_made.key.id)
                with one.client(key_made.secret) as third, pytest.raises(NotAuthenticated):
                    third.whoami()
