"""What pages about networks, runs, hosts and alerts need to have something to show."""

import os
import sqlite3
import time
from hashlib import sha256
from pathlib import Path

import msgspec

from teraflock.base.clock import SystemClock, microseconds
from teraflock.base.errors import Conflict
from teraflock.base.ids import new_id
from teraflock.client import Client
from teraflock.wire.acl import AclRuleRequest
from teraflock.wire.balancer import BalancerRequest
from teraflock.wire.host import HostCostRequest
from teraflock.wire.instance import LaunchRequest
from teraflock.wire.published_port import PublishRequest
from teraflock.wire.run import RunEstimateBody, RunRequest
from teraflock.wire.security_group import RuleRequest
from teraflock.wire.shape import ShapeRequest
from teraflock.wire.subnet import SubnetRequest

HOST = "simulated-0001"
SECONDS_MAX = 60.0


def furnish_networks(client: Client) -> None:
    """A second network, a guarded subnet, a group with rules, an open port, an address and a load balancer."""
    client.networks.create("backend")
    client.networks.peer("default", client.projects.list()[0].id, "backend")
    client.subnets.create(SubnetRequest(name="databases", network="backend", prefix=24))
    client.acls.create("border")
    for number, action, peer in ((100, "allow", "10.0.0.0/8"), (200, "deny", "0.0.0.0/0")):
        client.acls.add(
            "border",
            AclRuleRequest(direction="in", number=number, action=action, peer=peer),  # type: ignore[arg-type]
        )
    client.acls.attach("border", network="backend", subnet="databases")
    client.security_groups.create("web-servers")
    for ports, peer in (("443", "0.0.0.0/0"), ("8000-8010", "sg:default")):
        request = RuleRequest(direction="in", protocol="tcp", ports=ports, peer=peer)
        client.security_groups.allow("web-servers", request)
    client.security_groups.attach("web-servers", "web")
    client.published_ports.publish(PublishRequest(instance="web", guest_port=443))
    client.addresses.create()
    client.balancers.create(
        BalancerRequest(name="web", port=80, target_port=8000, instances=("web", "notebook"), protocol="http")
    )


def furnish_storage(client: Client) -> None:
    """A volume that an instance has, with a snapshot and a copy; one that is free; and two datasets, one still
    uploading."""
    client.volumes.create("results", 100 << 30, copied=True)
    client.volumes.create("scratch", 20 << 30)
    client.volumes.attach("results", "train")
    snapshot(client, "results", "before-upgrade")
    wait_for_copy(client, "results")
    push_small(client, "cifar10", b"labels")
    announce(client, "imagenet", b"more labels")


def snapshot(client: Client, volume: str, name: str) -> None:
    """A volume is empty, and has no snapshots, until its host has created it."""
    until = time.monotonic() + SECONDS_MAX
    while True:
        try:
            client.volumes.snapshot(volume, name)
            return
        except Conflict:
            assert time.monotonic() < until, "the volume stays empty"
            time.sleep(0.05)


def wait_for_copy(client: Client, volume: str) -> None:
    until = time.monotonic() + SECONDS_MAX
    while not any(each.state == "ready" for each in client.volumes.get(volume).copies):
        assert time.monotonic() < until, "the volume is not copied"
        time.sleep(0.05)


def push_small(client: Client, name: str, content: bytes) -> None:
    """A dataset with one small file."""
    digest = announce(client, name, content)
    client.datasets.upload(name, digest, content)
    client.datasets.complete(name)


def announce(client: Client, name: str, content: bytes) -> str:
    """The manifest of a dataset with one file. Its content is not sent."""
    digest = sha256(content).hexdigest()
    manifest = msgspec.json.encode(
        {"files": [["labels.txt", len(content), False]], "chunks": [[digest, len(content)]]}
    )
    named = sha256(manifest).hexdigest()
    client.runs.upload(named, manifest)
    client.datasets.create(name, named)
    return digest


def furnish_runs(client: Client) -> None:
    """A run that goes on for minutes, with an estimate; one that failed; and a launch that waits for room."""
    estimate = RunEstimateBody(
        source="trace",
        gpu="V100",
        step_seconds=(0.08, 0.1, 0.13),
        steps=6000,
        hours=(0.13, 0.17, 0.22),
        memory_bytes=3 << 30,
        cost_micros=(300_000, 410_000, 530_000),
        currency="USD",
    )
    client.runs.create(RunRequest(name="broken", command=("false",)))
    train = ("train", "6000", "0.1", "50")
    client.runs.create(RunRequest(name="vgg", command=train, estimate=estimate, environment={"EPOCHS": "90"}))
    large = ShapeRequest(gpu="V100", gpus=4)
    client.instances.launch(LaunchRequest(name="large", shape=large, instances=3, queue=True))


def furnish_hosts(client: Client, home: Path) -> None:
    """A cost, and alerts as the server records them."""
    client.hosts.set_cost(HOST, HostCostRequest(micros_per_hour=1_200_000, currency="USD"))
    card = "0000:01:00.0"
    put_alert(home, "host.hot", {"host": HOST, "card": card, "celsius": 91})
    put_alert(home, "host.cool", {"host": HOST, "card": card, "celsius": 71})
    put_alert(home, "host.disk-filling", {"host": HOST, "percent": 91, "level": 90})
    put_alert(home, "host.card-lost", {"host": HOST, "card": "0000:02:00.0"})
    put_alert(home, "host.xid", {"host": HOST, "card": "0000:02:00.0", "xid": 79})


def put_alert(home: Path, kind: str, details: dict[str, object]) -> None:
    """Write an event into the database of a server."""
    now = SystemClock().now()
    row = (
        new_id("evt", now, os.urandom),
        microseconds(now),
        kind,
        "hst_0000000000000000",
        "",
    )
    connection = sqlite3.connect(home / "cloud" / "cloud.db", timeout=30)
    with connection:
        connection.execute(
            "INSERT INTO event (id, at_us, kind, subject, project_id, details) VALUES (?, ?, ?, ?, ?, ?)",
            (*row, msgspec.json.encode(details).decode()),
        )
    connection.close()
