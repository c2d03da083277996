"""Many of everything that pages list, besides instances and offers: as many as the limits of a tenant allow.

One of each thing is created over the API. Its rows are then multiplied in the database of the stopped server, because
thousands of requests would take minutes.
"""

import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.console.furnishing import furnish_hosts, furnish_networks, furnish_runs, furnish_storage

from bench.processes import Fault
from teraflock.client import Client
from teraflock.wire.instance import LaunchRequest
from teraflock.wire.key import KeyRequest
from teraflock.wire.member import MemberRequest
from teraflock.wire.published_port import PublishRequest
from teraflock.wire.shape import ShapeRequest
from teraflock.wire.snapshot import SnapshotRequest
from teraflock.wire.ssh_key import SshKeyRequest

SSH_KEY: Final = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f bench"
MEMBERS: Final = 5_000


def id_of(prefix: str) -> str:
    """An id in the form that the server makes."""
    return f"'{prefix}' || printf('%016d', n)"


TABLES: Final[tuple[tuple[str, str, int, Mapping[str, str]], ...]] = (
    ("volume", "name = 'scratch'", 490, {"id": id_of("vol_"), "name": "'volume-' || n"}),
    ("dataset", "name = 'cifar10'", 990, {"id": id_of("dat_"), "name": "'set-' || n", "digest": "'x' || n"}),
    ("published_port", "1", 190, {"id": id_of("pub_"), "port": "40000 + n", "guest_port": "n"}),
    ("security_group", "name = 'web-servers'", 95, {"id": id_of("sg_"), "name": "'group-' || n"}),
    ("acl", "name = 'border'", 18, {"id": id_of("acl_"), "name": "'acl-' || n"}),
    ("queued_launch", "name = 'later'", 90, {"id": id_of("que_"), "name": "'later-' || n"}),
    ("run", "name = 'broken'", 5_000, {"id": id_of("run_"), "name": "'run-' || n"}),
    ("image", "name = 'base'", 500, {"id": id_of("img_"), "name": "'image-' || n"}),
    ("event", "kind = 'host.xid'", 20_000, {"id": id_of("evt_"), "subject": id_of("hst_")}),
    ("project", "name = 'third'", 1_000, {"id": id_of("prj_"), "name": "'team-' || n", "network_number": "n"}),
    ("member", "name = 'ann@lab.example'", MEMBERS, {"id": id_of("mem_"), "name": "'ann-' || n"}),
    (
        "member_role",
        "member_id = (SELECT id FROM member WHERE name = 'ann@lab.example')",
        MEMBERS,
        {"member_id": id_of("mem_")},
    ),
    ("api_key", "name = 'spare'", MEMBERS, {"id": id_of("key_"), "name": "'key-' || n", "member_id": id_of("mem_")}),
    ("member_ssh_key", "1", MEMBERS, {"id": id_of("ssh_"), "member_id": id_of("mem_")}),
    ("console_session", "1", MEMBERS, {"id": id_of("ses_"), "member_id": id_of("mem_")}),
)  # fmt: skip


def furnish_one_of_each(client: Client, home: Path) -> None:
    """Small instances with the names that the furnishing of the tests uses, and one of each other thing."""
    client.members.add(MemberRequest(name="ann@lab.example", role="member"))
    client.keys.create(KeyRequest(name="spare"))
    client.ssh_keys.add(SshKeyRequest(public_key=SSH_KEY))
    for name in ("train", "web", "notebook"):
        client.instances.launch(LaunchRequest(name=name, shape=ShapeRequest(gpu="V100")))
        client.instances.wait_until(name, "running")
    client.snapshots.create("train", SnapshotRequest(name="before-upgrade"))
    furnish_networks(client)
    client.published_ports.publish(PublishRequest(instance="web", guest_port=8080))
    furnish_storage(client)
    furnish_runs(client)
    furnish_hosts(client, home)


def queue_launch(client: Client) -> None:
    """A launch for which there is no room."""
    shape = ShapeRequest(gpu="V100", gpus=8)
    client.instances.launch(LaunchRequest(name="later", shape=shape, instances=4, queue=True))


def multiply_rows(home: Path) -> None:
    connection = sqlite3.connect(home / "cloud" / "cloud.db")
    with connection:
        for table, where, count, changes in TABLES:
            _multiply(connection, table, where, count, changes)
    connection.close()


def _multiply(
    connection: sqlite3.Connection, table: str, where: str, count: int, changes: Mapping[str, str]
) -> None:
    columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
    values = ", ".join(changes.get(each, f"one.{each}") for each in columns)
    before = connection.total_changes
    connection.execute(
        f"WITH RECURSIVE number(n) AS (SELECT 1000 UNION ALL SELECT n + 1 FROM number WHERE n < {999 + count})"
        f" INSERT INTO {table} ({', '.join(columns)})"
        f" SELECT {values} FROM number, (SELECT * FROM {table} WHERE {where} LIMIT 1) AS one"
    )
    if connection.total_changes - before != count:
        raise Fault(f"{table}: {connection.total_changes - before} rows instead of {count}")
