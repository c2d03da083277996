"""The providers' own SDKs against our fakes: each makes the calls that our driver makes, with the same contents, and
reads the fake's answers into its models. `make vendors` installs the SDKs in an environment of their own and runs this.
"""

import re
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import msgspec
import pytest
from tests.contract.cloud.direct import Direct
from tests.fakes.base import FakeCloud
from tests.fakes.server import FakeServer
from tests.unit.drivers.clouds.test_signatures import RSA_KEY
from tests.vendors import read_models

MARK = "m7e81w00sm3jsp32"
FINGERPRINT = ":".join(["20"] * 16)
Call = tuple[str, dict[str, str], Any]
"""Method and path, query, and body."""


def recorded(fake: FakeCloud) -> list[Call]:
    """The calls that the fake answers from now on. Tokens are not among them."""
    calls: list[Call] = []
    answered = fake.answer

    def answer(
        method: str, path: str, query: Mapping[str, str], headers: Mapping[str, str], content: bytes | None
    ) -> tuple[int, dict[str, str], bytes]:
        if not path.startswith("/token"):
            name = headers.get("x-acs-action", "")
            body = None if name or not content else msgspec.json.decode(content)
            calls.append((name or f"{method} {path}", dict(query), body))
        return answered(method, path, query, headers, content)

    fake.answer = answer  # type: ignore[method-assign]
    return calls


def our_calls(kind: str, folder: Path) -> dict[str, Call]:
    """One call of each kind that our driver makes in the life of a spot machine, by its line."""
    cloud = Direct(kind, folder)
    calls = recorded(cloud.fake)
    cloud.site.check()
    cloud.site.refresh_types()
    mode = "spot" if "spot" in cloud.site.types()[0].prices else "on-demand"
    made = cloud.create(mode=mode)
    cloud.ready(made, mode=mode)
    for what in cloud.fake.leaves:
        cloud.fake.leave(what, MARK, "ins_9.1.0")
    for each in cloud.site.leftovers():
        cloud.site.remove_leftover(each)
    cloud.delete(made)
    return {_line(call[0]): call for call in calls}


def _line(name: str) -> str:
    """The call without the id at its end, of which each machine and disk has another."""
    return re.sub(
        r"(/(?:instances?|cloudvolumes|bootVolumes|floating_ips|volumes?|eip))/(?!detail|flavorSpec)[^/]+$",
        r"\1/ID",
        name,
    )


def their_calls(kind: str, vendor: "Vendor", ours: dict[str, Call], folder: Path) -> dict[str, Call]:
    cloud = Direct(kind, folder)
    calls = recorded(cloud.fake)
    for what in cloud.fake.leaves:
        cloud.fake.leave(what, MARK, "ins_9.1.0")
    urls: dict[str, str] = {}
    with ExitStack() as servers:
        for each in ("", *cloud.fake.services):
            prefix = f"/{each}" if each else ""
            served = FakeServer(cloud.fake, host=f"{cloud.kind.first_region}.fake", prefix=prefix)
            urls[each] = servers.enter_context(served).url
        vendor(urls, ours, cloud)
    assert cloud.fake.machines, "the SDK launched nothing"
    assert cloud.fake.alive == [], "the SDK deleted nothing"
    return {_line(call[0]): call for call in calls}


Vendor = Callable[[dict[str, str], dict[str, Call], Direct], None]
"""What an SDK does with the addresses of the provider's services, and the calls that it is to make."""


def ibm(urls: dict[str, str], ours: dict[str, Call], cloud: Direct) -> None:
    from ibm_cloud_sdk_core.authenticators import BearerTokenAuthenticator
    from ibm_vpc import vpc_v1 as models

    service = models.VpcV1(version="2025-11-25", authenticator=BearerTokenAuthenticator("token-of-ibm"))
    service.set_service_url(urls[""])
    profiles = service.list_instance_profiles().get_result()
    assert models.InstanceProfileCollection.from_dict(profiles).profiles[0].name
    launch = models.InstancePrototypeInstanceByImageInstanceByImageInstanceByNetworkAttachment
    prototype = launch.from_dict(ours["POST /instances"][2])
    made = models.Instance.from_dict(service.create_instance(prototype).get_result())
    cloud.wait(60)
    listed = models.InstanceCollection.from_dict(service.list_instances(limit=100).get_result())
    assert [each.status for each in listed.instances] == ["running"]
    seen = models.Instance.from_dict(service.get_instance(made.id).get_result())
    interface = {"id": seen.primary_network_attachment.virtual_network_interface.id}
    address = {"name": seen.name, "target": interface}
    floating = service.create_floating_ip(models.FloatingIPPrototypeFloatingIPByTarget.from_dict(address))
    assert models.FloatingIP.from_dict(floating.get_result()).address == cloud.fake.alive[0].address
    addresses = models.FloatingIPCollection.from_dict(service.list_floating_ips(limit=100).get_result())
    disks = models.VolumeCollection.from_dict(service.list_volumes(limit=100).get_result())
    for each in addresses.floating_ips:
        service.delete_floating_ip(each.id)
    for each in disks.volumes:
        service.delete_volume(each.id)
    service.delete_instance(made.id)


def huawei(urls: dict[str, str], ours: dict[str, Call], cloud: Direct) -> None:
    from huaweicloudsdkcore.auth.credentials import BasicCredentials
    from huaweicloudsdkecs import v2 as ecs
    from huaweicloudsdkevs import v2 as evs

    def client(kind: Any, at: str) -> Any:
        key = BasicCredentials("akexample", "skexample", "project")
        return kind.new_builder().with_credentials(key).with_endpoint(at).build()

    servers, disks = client(ecs.EcsClient, urls[""]), client(evs.EvsClient, urls["disks"])
    assert servers.list_flavors(ecs.ListFlavorsRequest()).flavors[0].os_extra_specs.infogpuname
    body = ours["POST /v1/project/cloudservers"][2]
    request = ecs.CreatePostPaidServersRequest(body=_built(ecs, "CreatePostPaidServersRequestBody", body))
    request.x_client_token = "ins_1.1.0"
    made = servers.create_post_paid_servers(request)
    cloud.wait(60)
    query = ours["GET /v1/project/cloudservers/detail"][1]
    listed = servers.list_servers_details(
        ecs.ListServersDetailsRequest(
            tags=query["tags"], limit=int(query["limit"]), offset=int(query["offset"])
        )
    )
    assert [each.id for each in listed.servers] == list(made.server_ids)
    assert listed.servers[0].status == "ACTIVE"
    delete = _built(ecs, "DeleteServersRequestBody", {**ours["POST /v1/project/cloudservers/delete"][2]})
    delete.servers[0].id = made.server_ids[0]
    servers.delete_servers(ecs.DeleteServersRequest(body=delete))
    asked = ours["GET /disks/v2/project/cloudvolumes/detail"][1]
    there = disks.list_volumes(
        evs.ListVolumesRequest(status=asked["status"], limit=int(asked["limit"]), offset=int(asked["offset"]))
    )
    assert there.count == len(there.volumes)
    disks.delete_volume(evs.DeleteVolumeRequest(volume_id=next(iter(cloud.fake.disks))))


def oracle(urls: dict[str, str], ours: dict[str, Call], cloud: Direct) -> None:
    import oci
    from oci.core import models

    names = {"tenancy": "ocid1.tenancy.oc1..aaa", "user": "ocid1.user.oc1..bbb", "fingerprint": FINGERPRINT}
    config = {**names, "region": "us-ashburn-1", "key_content": RSA_KEY}
    signer = oci.signer.Signer(*names.values(), None, private_key_content=RSA_KEY)
    more: dict[str, Any] = {"signer": signer, "retry_strategy": oci.retry.NoneRetryStrategy()}
    compute = oci.core.ComputeClient(config, service_endpoint=urls[""], **more)
    network = oci.core.VirtualNetworkClient(config, service_endpoint=urls[""], **more)
    disks = oci.core.BlockstorageClient(config, service_endpoint=urls[""], **more)
    identity = oci.identity.IdentityClient(config, service_endpoint=urls["identity"], **more)
    home = config["tenancy"]
    (domain,) = identity.list_availability_domains(home).data
    assert compute.list_shapes(home, limit=500).data[0].gpus == 1
    body = ours["POST /20160918/instances"][2]
    launch = _built(models, "LaunchInstanceDetails", body)
    made = compute.launch_instance(launch, opc_retry_token="ins_1.1.0").data
    assert made.lifecycle_state == "PROVISIONING"
    cloud.wait(60)
    assert [each.lifecycle_state for each in compute.list_instances(home, limit=1000).data] == ["RUNNING"]
    (attached,) = compute.list_vnic_attachments(home, limit=1000).data
    subnet = body["createVnicDetails"]["subnetId"]
    (private,) = network.list_private_ips(subnet_id=subnet, limit=1000).data
    place = {"scope": "AVAILABILITY_DOMAIN", "availability_domain": domain.name, "limit": 1000}
    (public,) = network.list_public_ips(compartment_id=home, **place).data
    assert (attached.vnic_id, public.assigned_entity_id) == (private.vnic_id, private.id)
    for each in disks.list_boot_volumes(compartment_id=home, limit=1000).data:
        disks.delete_boot_volume(each.id)
    compute.terminate_instance(made.id, preserve_boot_volume=False)


def baidu(urls: dict[str, str], ours: dict[str, Call], cloud: Direct) -> None:
    """Only its models: the client of version 0.0.9 imports a module that no published version of its core has."""
    from baiducloud_python_sdk_bcc import models
    from baiducloud_python_sdk_eip import models as eips

    def ask(line: str, reply: Any, request: Any = None, *, service: str = "", last: str = "") -> Any:
        method, _, path = line.partition(" ")
        path = path.removeprefix(f"/{service}") if service else path
        query = "&".join(f"{name}={value}" for name, value in ours[line][1].items())
        where = f"{urls[service]}{path.replace('/ID', f'/{last}')}?{query}"
        content = request.to_json_string().encode() if request else None
        headers = {"Authorization": "bce-auth-v1/akexample/made-up", "Content-Type": "application/json"}
        asked = Request(where, content, headers, method=method)
        with urlopen(asked) as answer:
            body = answer.read()
        return reply().from_dict(msgspec.json.decode(body)) if reply else None

    zones = ask("GET /v2/instance/flavorSpec", models.ListFlavorSpecResponse).zone_resources
    assert zones[0].bcc_resources.flavor_groups[0].flavors[0].gpu_card_count == 1
    line = "POST /v2/instanceBySpec"
    blank = models.CreateInstanceBySpecRequest(image_id="", spec="", zone_name="", billing=None)
    made = ask(line, models.CreateInstanceBySpecResponse, blank.from_dict(ours[line][2]))
    cloud.wait(60)
    (seen,) = ask("GET /v2/instance", models.ListInstancesResponse).instances
    assert (seen.id, seen.status) == (made.instance_ids[0], "Running")
    assert seen.public_ip == cloud.fake.alive[0].address
    line = "POST /v2/volume/ID"
    for disk in ask("GET /v2/volume", models.ListVolumesResponse).volumes:
        ask(line, None, models.ReleaseVolumeRequest(volume_id="").from_dict(ours[line][2]), last=disk.id)
    for each in ask("GET /eip/v1/eip", eips.QueryEipListResponse, service="eip").eip_list:
        ask("DELETE /eip/v1/eip/ID", None, service="eip", last=each.eip)
    flags = {"related_release_flag": True, "delete_cds_snapshot_flag": True, "delete_related_enis_flag": True}
    release = models.ReleaseInstanceByPostRequest(instance_id=seen.id, **flags)
    ask("POST /v2/instance/ID", None, release, last=seen.id)


def alibaba(urls: dict[str, str], ours: dict[str, Call], cloud: Direct) -> None:
    from alibabacloud_ecs20140526 import models
    from alibabacloud_ecs20140526.client import Client
    from alibabacloud_tea_openapi.models import Config

    at, region = urls[""].removeprefix("http://"), cloud.kind.first_region
    client = Client(
        Config(access_key_id="akexample", access_key_secret="skexample", endpoint=at, protocol="http")
    )

    def ask(action: str, **changes: str) -> Any:
        request = getattr(models, f"{action}Request")().from_map(_nested({**ours[action][1], **changes}))
        method = re.sub(r"(?<!^)(?=[A-Z])", "_", action).lower()
        return getattr(client, method)(request).body

    assert ask("DescribeInstanceTypes").instance_types.instance_type[0].gpuamount == 1
    assert ask("DescribePrice").price_info.price.trade_price > 0
    (id,) = ask("RunInstances", RegionId=region).instance_id_sets.instance_id_set
    cloud.wait(60)
    (seen,) = ask("DescribeInstances", RegionId=region).instances.instance
    assert (seen.instance_id, seen.status) == (id, "Running")
    assert seen.public_ip_address.ip_address == [cloud.fake.alive[0].address]
    for disk in ask("DescribeDisks", RegionId=region).disks.disk:
        ask("DeleteDisk", DiskId=disk.disk_id)
    ask("DeleteInstances", **{"InstanceId.1": id})


VARIES = {
    "page", "start", "marker", "name", "InstanceId.1", "DiskId", "RegionId", "ClientToken", "clientToken", "limit",
    "maxKeys", "offset",
}  # fmt: skip
"""Parameters whose values differ between two lives of a machine."""
VENDORS: dict[str, tuple[str, Vendor]] = {
    "alibaba": ("alibabacloud_ecs20140526", alibaba),
    "baidu": ("baiducloud_python_sdk_bcc", baidu),
    "huawei": ("huaweicloudsdkecs", huawei),
    "ibm": ("ibm_vpc", ibm),
    "oci": ("oci", oracle),
}


@pytest.mark.parametrize("kind", sorted(VENDORS))
def test_the_sdk_makes_our_calls_and_reads_the_answers(kind: str, tmp_path: Path) -> None:
    module, vendor = VENDORS[kind]
    pytest.importorskip(module)
    ours = our_calls(kind, tmp_path)
    theirs = their_calls(kind, vendor, ours, tmp_path)
    assert set(ours) <= set(theirs), "calls that the SDK does not make"
    for line, (_, query, body) in ours.items():
        said = theirs[line]
        assert _same(body, said[2]), line
        assert set(query) - VARIES <= set(said[1]), line
        different = {name for name in set(query) - VARIES if query[name] != said[1][name]}
        assert not different, (line, different)


@pytest.mark.parametrize("kind", sorted(read_models.SDKS))
def test_the_tables_are_those_of_the_sdks(kind: str) -> None:
    pytest.importorskip(VENDORS[kind][0])
    packages, read, roots = read_models.SDKS[kind]
    assert (read_models.FOLDER / f"{kind}.json").read_text() == read_models.written(
        read_models.table(packages, read, roots)
    )


def _same(ours: Any, theirs: Any) -> bool:
    """Whether two bodies say the same. Ids of machines differ, since each side has its own."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        keys = set(ours) | {key for key, value in theirs.items() if value is not None}
        return all(key in theirs and (key == "id" or _same(ours.get(key), theirs[key])) for key in keys)
    if isinstance(ours, list) and isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(_same, ours, theirs))
    return bool(ours == theirs) or not (ours or theirs)


def _nested(flat: Mapping[str, str]) -> dict[str, Any]:
    """`{"Tag.1.Key": "a"}` as `{"Tag": [{"Key": "a"}]}`."""
    found: dict[str, Any] = {}
    for name, value in flat.items():
        parts, inside = name.split("."), found
        for part in parts[:-1]:
            inside = inside.setdefault(part, {})
        inside[parts[-1]] = value
    return {name: _lists(value) for name, value in found.items()}


def _lists(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    inside = {name: _lists(each) for name, each in value.items()}
    return list(inside.values()) if all(map(str.isdecimal, inside)) else inside


def _built(module: Any, name: str, value: Any) -> Any:
    """A model of an SDK from what our driver sends. Fails at a field that the model does not have."""
    kind = getattr(module, read_models.CHOSEN.get(name, name))
    types = kind.openapi_types if hasattr(kind, "openapi_types") else kind().swagger_types
    names = kind.attribute_map if hasattr(kind, "attribute_map") else kind().attribute_map
    fields = {wire: field for field, wire in names.items()}
    parts = {fields[key]: _value(module, types[fields[key]], each) for key, each in value.items()}
    return kind(**parts)


def _value(module: Any, type: str, value: Any) -> Any:
    if found := re.fullmatch(r"list\[(\w+)\]", type):
        return [_value(module, found[1], each) for each in value]
    return _built(module, type, value) if isinstance(value, dict) and hasattr(module, type) else value
