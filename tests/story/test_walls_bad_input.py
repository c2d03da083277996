"""Bad input about networks, through the command line and through the API: one clear error, and nothing half applied."""

import json
import urllib.error
import urllib.request
from datetime import UTC, datetime
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from tests.story.cloud import Cloud
from tests.story.tera import Done
from tests.unit.network.balancer.certificates import pem_of, self_signed

SMALL = ("--vcpus", "1", "--ram", "1", "--wait")
EVERYTHING = ("networks", "subnets", "security-groups", "acls", "balancers", "published-ports")


class Desk:
    def __init__(self, cloud: Cloud) -> None:
        self.cloud = cloud
        connection = json.loads((cloud.home / "connection.json").read_text())
        self._server, self._key = connection["server"], connection["key"]
        cloud.ok("launch", "--name", "web", *SMALL)
        cloud.ok("launch", "--name", "db", *SMALL)
        cloud.ok("subnet", "create", "taken", "--cidr", "10.128.4.0/24")
        cloud.ok("sg", "create", "used")
        cloud.ok("sg", "attach", "used", "web")
        cloud.ok("sg", "create", "gone")
        cloud.ok("sg", "delete", "gone", "--yes")
        cloud.ok("acl", "create", "border")
        cloud.ok("acl", "allow", "border", "10", "--in", "--from", "0.0.0.0/0")
        cloud.ok("publish", "web", "80", "--port", "30001")

    def state(self) -> list[Any]:
        return [self.asked("GET", f"/v1/{each}", None)[1]["items"] for each in EVERYTHING]

    def asked(self, method: str, path: str, body: dict[str, Any] | None) -> tuple[int, dict[str, Any]]:
        data = json.dumps(body).encode() if body is not None else None
        headers = {"Authorization": f"Bearer {self._key}", "Content-Type": "application/json"}
        request = urllib.request.Request(self._server + path, data=data, headers=headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, json.loads(answer.read() or b"{}")
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read())


@pytest.fixture(scope="module")
def desk(cloud: Cloud) -> Desk:
    return Desk(cloud)


def rule(**more: Any) -> dict[str, Any]:
    return {"direction": "in", "protocol": "tcp", "ports": "80", "peer": "0.0.0.0/0", **more}


ALLOW = ("sg", "allow", "used", "--in", "--protocol", "tcp")
RULES, ACL_RULES = "/v1/security-groups/used/rules", "/v1/acls/border/rules"
CASES: dict[str, tuple[tuple[str, ...], tuple[str, str, dict[str, Any] | None], str, int]] = {
    "overlapping subnets": (
        ("subnet", "create", "more", "--cidr", "10.128.4.0/25"),
        ("POST", "/v1/subnets", {"name": "more", "cidr": "10.128.4.0/25"}),
        "10.128.4.0/25 overlaps the subnet `taken` (10.128.4.0/24)",
        409,
    ),
    "a rule that names a deleted group": (
        (*ALLOW, "--port", "80", "--from", "sg:gone"),
        ("POST", RULES, rule(peer="sg:gone")),
        "Unknown security group `gone`",
        422,
    ),
    "a group in use": (
        ("sg", "delete", "used", "--yes"),
        ("DELETE", "/v1/security-groups/used", None),
        "is in use",
        409,
    ),
    "port 70000": (
        (*ALLOW, "--port", "70000", "--from", "0.0.0.0/0"),
        ("POST", RULES, rule(ports="70000")),
        "Port `70000` is out of range",
        422,
    ),
    "a CIDR with host bits": (
        (*ALLOW, "--port", "80", "--from", "10.0.0.1/8"),
        ("POST", RULES, rule(peer="10.0.0.1/8")),
        "`10.0.0.1/8` has host bits set",
        422,
    ),
    "an ACL number twice": (
        ("acl", "deny", "border", "10", "--in", "--from", "0.0.0.0/0"),
        ("POST", ACL_RULES, {"direction": "in", "number": 10, "action": "deny", "peer": "0.0.0.0/0"}),
        "has a rule 10 for `in` already",
        409,
    ),
    "a published port that is taken": (
        ("publish", "db", "80", "--port", "30001"),
        ("POST", "/v1/published-ports", {"instance": "db", "guest_port": 80, "port": 30_001}),
        "Port 30001 of the host is taken",
        409,
    ),
    "an IPv6 network with host bits": (
        (*ALLOW, "--port", "80", "--from", "fd00::1/8"),
        ("POST", RULES, rule(peer="fd00::1/8")),
        "`fd00::1/8` has host bits set",
        422,
    ),
    "an IPv4 address in the form of IPv6": (
        (*ALLOW, "--port", "80", "--from", "::ffff:10.0.0.1"),
        ("POST", RULES, rule(peer="::ffff:10.0.0.1")),
        "`::ffff:10.0.0.1` is an IPv4 network in the form of IPv6",
        422,
    ),
    "an address with a zone in an ACL": (
        ("acl", "allow", "border", "20", "--in", "--from", "fe80::1%eth0"),
        ("POST", ACL_RULES, {"direction": "in", "number": 20, "action": "allow", "peer": "fe80::1%eth0"}),
        "`fe80::1%eth0` is not a network",
        422,
    ),
    "an IPv6 subnet": (
        ("subnet", "create", "more", "--cidr", "fd00::/64"),
        ("POST", "/v1/subnets", {"name": "more", "cidr": "fd00::/64"}),
        "`fd00::/64` is not an IPv4 network",
        422,
    ),
    "a subnet of another project's addresses": (
        ("subnet", "create", "more", "--cidr", "10.200.0.0/24"),
        ("POST", "/v1/subnets", {"name": "more", "cidr": "10.200.0.0/24"}),
        "is not in the network `default`",
        422,
    ),
    "an ACL for a subnet that is not there": (
        ("acl", "attach", "border", "--subnet", "sub_0000000000000000"),
        ("PUT", "/v1/acls/border/attached?subnet=sub_0000000000000000", None),
        "There is no subnet",
        404,
    ),
}


def sentence_of(failed: Done) -> str:
    (found,) = [each for each in failed.err.splitlines() if each.startswith("error: ")]
    return found


@pytest.mark.parametrize("name", CASES)
def test_bad_input_gets_one_error_and_changes_nothing(desk: Desk, name: str) -> None:
    words, (method, path, body), sentence, status = CASES[name]
    before = desk.state()
    failed = desk.cloud.fails(*words)
    assert sentence in sentence_of(failed)
    assert failed.code == (2 if status == 422 else 1)
    assert failed.hint or status == 404
    got, answer = desk.asked(method, path, body)
    assert (got, sentence in answer["detail"]) == (status, True), answer
    assert desk.state() == before


def test_a_key_that_does_not_match_its_certificate(desk: Desk) -> None:
    one, other = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    certificate, key = self_signed(one, now=datetime.now(UTC)), pem_of(other)
    folder, before = desk.cloud.home.parent, desk.state()
    (folder / "cert.pem").write_text(certificate)
    (folder / "key.pem").write_text(key)
    files = ("--certificate", folder / "cert.pem", "--key", folder / "key.pem")
    failed = desk.cloud.fails("lb", "create", "front", "--port", "443", "--to", "web", *files)
    assert "does not match" in sentence_of(failed)
    body = {"name": "front", "port": 443, "instances": ["web"], "certificate": certificate, "key": key}
    status, answer = desk.asked("POST", "/v1/balancers", body)
    assert (status, "does not match" in answer["detail"]) == (422, True)
    assert "PRIVATE" not in json.dumps(answer)
    assert desk.state() == before
