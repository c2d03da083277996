"""EC2 against moto, which is not ours; what moto cannot do is answered here, as botocore's own model allows."""

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.contract.cloud.ground import derive
from tests.contract.driver.grounds import network
from tests.fakes.base import FakeCloud
from tests.fakes.guest import FakeLink

from teraflock.base.clock import FixedClock
from teraflock.base.errors import BadInput
from teraflock.drivers.clouds.boto import BotoTransport
from teraflock.drivers.clouds.calls import CloudCall, CloudReply
from teraflock.drivers.clouds.ec2 import Ec2Cloud
from teraflock.drivers.clouds.engine import CloudSite
from teraflock.drivers.clouds.errors import CannotDo
from teraflock.drivers.clouds.model import Pace
from teraflock.drivers.clouds.pacing import Pacer
from teraflock.instance.driver import Handle, Machine, Port, Rental, Seen
from teraflock.instance.ending import StillEnding
from teraflock.instance.engine_errors import BadCredentials, EngineBusy, EngineRefused, NoRoom, OverQuota
from teraflock.instance.model import InstanceId

IMAGE = "ami-12c6146b"
SECRET = "AKIAEXAMPLE:secretexamplekey"
PRODUCT = {
    "product": {"attributes": {"instanceType": "g4dn.xlarge"}},
    "terms": {"OnDemand": {"a": {"priceDimensions": {"b": {"pricePerUnit": {"USD": "0.5260000000"}}}}}},
}


class Aws:
    """moto, with prices that it lacks and errors on demand."""

    def __init__(self) -> None:
        self.transport = BotoTransport(SECRET)
        self.errors: dict[str, tuple[int, str]] = {}
        self.calls: list[CloudCall] = []

    def url(self, call: CloudCall) -> str:
        return ""

    def send(self, call: CloudCall, headers: Mapping[str, str], content: bytes | None) -> CloudReply:
        self.calls.append(call)
        if call.method in self.errors:
            status, code = self.errors[call.method]
            return CloudReply(status=status, body={"code": code, "message": "as AWS says"})
        if call.method == "pricing.GetProducts":
            return CloudReply(status=200, body={"PriceList": [json.dumps(PRODUCT)]})
        if call.method == "ec2.DescribeImages":  # moto loads its hundreds of images each time
            older = {"ImageId": "ami-1", "CreationDate": "2024-01-01T00:00:00.000Z"}
            newer = {
                "ImageId": IMAGE,
                "CreationDate": "2026-01-01T00:00:00.000Z",
                "RootDeviceName": "/dev/xvda",
            }
            return CloudReply(status=200, body={"Images": [newer, older]})
        return self.transport.send(call, headers, content)


@cache
def shared_loader(data_path: str | None) -> Any:
    """Read the description of EC2 once: each session would read it anew, for half a second."""
    from botocore.loaders import create_loader

    return create_loader(data_path)


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[Aws]:
    monkeypatch.setenv("MOTO_EC2_LOAD_DEFAULT_AMIS", "false")
    moto = pytest.importorskip("moto")
    monkeypatch.setattr("botocore.session.create_loader", shared_loader)
    with moto.mock_aws():
        yield Aws()


@pytest.fixture
def site(aws: Aws, tmp_path: Path) -> CloudSite:
    clock = FixedClock(datetime(2026, 11, 15, tzinfo=UTC))
    return CloudSite(
        "aws",
        "mark",
        clock,
        cloud=Ec2Cloud({"regions": "us-east-1"}),
        transport=aws,
        signer=Ec2Cloud.signer(SECRET),
        pacer=Pacer(Pace(call_seconds=0, launch_seconds=0), pause=lambda _: None),
        link=FakeLink(FakeCloud(clock)),
        derive=derive,
        folder=tmp_path,
    )


def machine(token: str = "ins_1.1.0", **rental: Any) -> Machine:
    return Machine(
        handle=Handle(InstanceId("ins_1"), ""), hostname="one", image="img_1", vcpus=1, ram_bytes=1, disk_bytes=1,
        network=network(1), address="", ports=(Port(0, 22),),
        rental=Rental(type="g4dn.xlarge", region="us-east-1", token=token, **rental),
    )  # fmt: skip


def gone(site: CloudSite, handle: Handle) -> None:
    for _ in range(2):
        with pytest.raises(StillEnding):
            site.delete(handle)
    site.delete(handle)


def test_a_machine_is_rented_once_stopped_started_and_given_back(site: CloudSite, aws: Aws) -> None:
    first = site.create(machine())
    assert site.create(machine()) == first, "moto ignores the token: the look by tag finds it"
    (seen,) = site.sightings()
    assert (seen.instance_id, seen.seen) == ("ins_1", Seen.RUNNING)
    assert first.zone.startswith("us-east-1")
    (launch,) = [call.body for call in aws.calls if call.method == "ec2.RunInstances"]
    assert launch["ClientToken"] == "ins_1.1.0"
    assert (launch["ImageId"], launch["BlockDeviceMappings"][0]["DeviceName"]) == (IMAGE, "/dev/xvda")
    assert launch["BlockDeviceMappings"][0]["Ebs"]["DeleteOnTermination"] is True
    assert launch["MetadataOptions"] == {"HttpTokens": "required"}
    assert "secretexamplekey" not in str(launch)
    handle = Handle(InstanceId("ins_1"), "", first.remote_id)
    site.stop(handle, force=False)
    assert [each.seen for each in site.sightings()] == [Seen.STOPPED]
    site.start(handle)
    assert [each.seen for each in site.sightings()] == [Seen.RUNNING]
    gone(site, handle)
    assert list(site.sightings()) == []
    (group,) = site.leftovers()
    site.remove_leftover(group)
    assert site.leftovers() == []


def test_a_disk_without_a_machine_is_a_leftover_with_a_cost(site: CloudSite, aws: Aws) -> None:
    tags = [{"Key": "teraflock", "Value": "mark"}, {"Key": "teraflock-token", "Value": "ins_9.1.0"}]
    body = {
        "AvailabilityZone": "us-east-1a", "Size": 128, "VolumeType": "gp3",
        "TagSpecifications": [{"ResourceType": "volume", "Tags": tags}],
    }  # fmt: skip
    aws.transport.send(CloudCall(method="ec2.CreateVolume", path="us-east-1", body=body), {}, None)
    site.create(machine())
    (disk,) = site.leftovers()
    assert (disk.kind, disk.instance_id, disk.price_micros_per_hour) == ("disk", "ins_9", 14_027)
    site.remove_leftover(disk)
    assert site.leftovers() == []


def test_types_have_prices_of_aws(site: CloudSite) -> None:
    found = {each.name: each for each in site.refresh_types()}
    small = found["g4dn.xlarge"]
    assert (small.gpus, small.prices["on-demand"], small.currency) == (1, 526_000, "USD")
    assert "T4" in small.gpu.upper()
    assert site.check().startswith("AWS accepts the key")


def test_spot_is_asked_for_with_a_price_limit(site: CloudSite, aws: Aws) -> None:
    site.create(machine(mode="spot", price_limit_micros_per_hour=1_200_000))
    (launch,) = [call.body for call in aws.calls if call.method == "ec2.RunInstances"]
    assert launch["InstanceMarketOptions"]["SpotOptions"] == {
        "SpotInstanceType": "one-time", "InstanceInterruptionBehavior": "terminate", "MaxPrice": "1.200000",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("status", "code", "error"),
    [
        (500, "InsufficientInstanceCapacity", NoRoom),
        (400, "Unsupported", NoRoom),
        (400, "SpotMaxPriceTooLow", NoRoom),
        (400, "VcpuLimitExceeded", OverQuota),
        (400, "MaxSpotInstanceCountExceeded", OverQuota),
        (503, "RequestLimitExceeded", EngineBusy),
        (401, "AuthFailure", BadCredentials),
        (403, "UnauthorizedOperation", BadCredentials),
        (400, "InvalidParameterValue", EngineRefused),
    ],
)
def test_errors_of_aws(site: CloudSite, aws: Aws, status: int, code: str, error: type[Exception]) -> None:
    aws.errors["ec2.RunInstances"] = (status, code)
    with pytest.raises(error):
        site.create(machine())
    assert list(site.sightings()) == []


def test_a_wrong_key_does_not_count_as_gone(site: CloudSite, aws: Aws) -> None:
    made = site.create(machine())
    aws.errors["ec2.TerminateInstances"] = (401, "AuthFailure")
    with pytest.raises(BadCredentials):
        site.delete(Handle(InstanceId("ins_1"), "", made.remote_id))
    aws.errors.clear()
    gone(site, Handle(InstanceId("ins_1"), "", made.remote_id))


def test_large_first_boot_files_are_refused_before_anything_is_made(site: CloudSite, aws: Aws) -> None:
    from msgspec.structs import replace

    with pytest.raises(CannotDo, match="16 KB"):
        site.create(replace(machine(), user_data="#!/bin/sh\n" + "x" * 20_000))
    assert not [call for call in aws.calls if call.act != "read"]


def test_incomplete_credentials_are_refused() -> None:
    with pytest.raises(BadInput, match="ACCESS_KEY_ID:SECRET"):
        BotoTransport("AKIAEXAMPLE")
