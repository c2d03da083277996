"""SSH keys of members: instances get the keys of whoever launches them, and nobody else's."""

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.api.asking import OTHER_SSH_KEY, SSH_KEY, ApiServer, Tenants

from teraflock.base.errors import BadInput
from teraflock.instance import store as instances
from teraflock.instance.orders import SSH_KEY as ACCEPTED
from teraflock.tenant.model import ProjectId
from teraflock.tenant.ssh_key.rules import TYPES, keys_of_launch, parse_public_key


def launched(server: ApiServer, key: str, name: str, **more: Any) -> tuple[str, ...]:
    """The keys that an instance gets."""
    made = server.ask("POST", "/v1/instances", key, body={"name": name, "shape": {"vcpus": 1}, **more})
    assert made.status == 202, made
    id, project = made.json["items"][0]["id"], made.json["items"][0]["project_id"]
    with server.cloud.database.read() as tx:
        found = instances.find(tx, ProjectId(project), id)
    assert found is not None
    return found.instance.spec.authorized_keys


def bare(key: str) -> str:
    return key.rpartition(" ")[0]


def test_instances_get_the_keys_of_the_member_who_launches_them(server: ApiServer, tenants: Tenants) -> None:
    owner, member = tenants.keys["owner"], tenants.keys["member"]
    server.ask("POST", "/v1/ssh-keys", member, body={"public_key": OTHER_SSH_KEY})
    assert launched(server, owner, "a") == (bare(SSH_KEY),)
    assert launched(server, member, "b") == (bare(OTHER_SSH_KEY),)
    assert launched(server, member, "c", authorized_keys=[OTHER_SSH_KEY, SSH_KEY]) == (OTHER_SSH_KEY, SSH_KEY)
    mine = server.ask("GET", "/v1/ssh-keys", member).json["items"]
    assert [(each["name"], each["public_key"]) for each in mine] == [("ann@laptop", bare(OTHER_SSH_KEY))]
    assert server.ask("DELETE", f"/v1/ssh-keys/{mine[0]['id']}", owner).status == 200, "owners remove any key"
    assert launched(server, member, "d") == ()


def test_a_limited_key_adds_and_removes_no_ssh_key(server: ApiServer, tenants: Tenants) -> None:
    for limits in ({"project": "empty"}, {"role_max": "member"}, {"days": 1}):
        body = {"name": "ci", **limits}
        limited = server.ask("POST", "/v1/keys", tenants.keys["owner"], body=body).json["secret"]
        refused = server.ask("POST", "/v1/ssh-keys", limited, body={"public_key": OTHER_SSH_KEY})
        assert refused.code == "forbidden", limits
        kept = server.ask("DELETE", f"/v1/ssh-keys/{tenants.ids['ssh_key']}", limited)
        assert kept.code == "forbidden", limits


def test_a_removed_member_leaves_no_ssh_keys(server: ApiServer, tenants: Tenants) -> None:
    server.ask("POST", "/v1/ssh-keys", tenants.keys["member"], body={"public_key": OTHER_SSH_KEY})
    server.ask("DELETE", "/v1/members/member@acme", tenants.keys["owner"])
    left = server.ask("GET", "/v1/ssh-keys", tenants.keys["owner"]).json["items"]
    assert [each["id"] for each in left] == [tenants.ids["ssh_key"]]


def test_a_member_has_a_key_once_and_twenty_at_most(server: ApiServer, tenants: Tenants) -> None:
    owner = tenants.keys["owner"]
    assert server.ask("POST", "/v1/ssh-keys", owner, body={"public_key": SSH_KEY}).code == "conflict"
    for number in range(19):
        key = made_up("ssh-ed25519", bytes([number]) * 32)
        assert server.ask("POST", "/v1/ssh-keys", owner, body={"public_key": key}).status == 201
    last = server.ask("POST", "/v1/ssh-keys", owner, body={"public_key": OTHER_SSH_KEY})
    assert last.code == "quota_reached"


def made_up(kind: str, content: bytes) -> str:
    blob = len(kind).to_bytes(4, "big") + kind.encode() + len(content).to_bytes(4, "big") + content
    return f"{kind} {base64.b64encode(blob).decode()}"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ssh-ed25519",
        "ssh-dss AAAA",
        f'command="rm -rf /" {SSH_KEY}',
        f"{SSH_KEY}\n{OTHER_SSH_KEY}",
        SSH_KEY.replace("ssh-ed25519", "ssh-rsa", 1),
        "ssh-ed25519 AAAA!!",
        "ssh-ed25519 AAAA",
        "-----BEGIN OPENSSH PRIVATE KEY-----",
        "ssh-ed25519 " + "A" * 9000,
    ],
)
def test_what_is_not_one_public_key_is_refused(text: str) -> None:
    with pytest.raises(BadInput):
        parse_public_key(text)


@given(
    st.sampled_from(TYPES),
    st.binary(min_size=32, max_size=400),
    st.text(st.characters(categories=["L", "N"])),
)
def test_a_stored_key_is_one_that_instances_accept(kind: str, content: bytes, comment: str) -> None:
    key, fingerprint, found = parse_public_key(f"{made_up(kind, content)} {comment}")
    assert ACCEPTED.fullmatch(key)
    assert (fingerprint.startswith("SHA256:"), found) == (True, comment)


def test_keys_of_a_launch_come_once() -> None:
    assert keys_of_launch(["a b x", "c d"], ["a b", "e f"]) == ("a b x", "c d", "e f")
