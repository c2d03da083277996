"""Huawei Cloud ECS: virtual machines with cloud-init, launch tokens and spot. API `v1`.

A launch is a job: a machine that could not be made is listed with an error, or not at all. The operator names project,
network and subnet for each region, an image, and the prices.
"""

import base64
from typing import Any, ClassVar, Final

from teraflock.base.quantities import MIB
from teraflock.drivers.clouds.calls import GONE, Asking, CloudCall
from teraflock.drivers.clouds.errors import CannotDo, ErrorCodes
from teraflock.drivers.clouds.marks import MARK, TOKEN, Boot, read_name, read_tags
from teraflock.drivers.clouds.model import CURRENCY_OPTION, DISK_OPTION, PRICES_OPTION, CloudApi
from teraflock.drivers.clouds.signatures import HuaweiSigner
from teraflock.drivers.clouds.sound import time_of
from teraflock.drivers.rented import Remote
from teraflock.instance.account.model import Leftover
from teraflock.instance.driver import MachineType, Seen

PAGE: Final = 500
SEEN: Final = {
    "BUILD": Seen.PENDING,
    "REBOOT": Seen.PENDING,
    "HARD_REBOOT": Seen.PENDING,
    "ACTIVE": Seen.RUNNING,
    "SHUTOFF": Seen.BROKEN,
    "ERROR": Seen.BROKEN,
}
"""We stop none: one that is off was taken back. In all other states, such as `MIGRATING`, it still exists."""
ENDED: Final = ("DELETED", "SOFT_DELETED")
GPU: Final = "info:gpu:name"
"""Such as `1 * NVIDIA T4 / 1 * 16G`."""


class HuaweiCloud(CloudApi):
    kind = "huawei"
    title = "Huawei Cloud"
    signs = HuaweiSigner
    base_url = "https://ecs.{region}.myhuaweicloud.com"
    services: ClassVar = {"disks": "https://evs.{region}.myhuaweicloud.com"}
    currency = "CNY"
    has_time_limit = True
    codes = ErrorCodes(
        no_room=["sold out", "Ecs.0319", "insufficient resources"],
        quota=["Ecs.0001", "quota is insufficient"],
        money=["Ecs.0003", "insufficient balance"],
        busy=["Ecs.0002", "APIGW.0308"],
        access=["APIGW.03*"],
    )
    options: ClassVar = {
        "prices": PRICES_OPTION,
        "networks": "For each region a project, VPC and subnet, whose default security group admits SSH:"
        " `REGION=PROJECT/VPC/SUBNET,…`. Required",
        "images": "For each region an Ubuntu image with NVIDIA drivers: `REGION=ID,…`. Required",
        "disk_gb": f"{DISK_OPTION}. Default: 100",
        "currency": f"{CURRENCY_OPTION}. Default: `CNY`",
    }
    defaults: ClassVar = {"disk_gb": "100"}

    @property
    def regions(self) -> list[str]:
        return list(self.pairs("networks"))

    def _call(self, method: str, region: str, path: str, **more: Any) -> CloudCall:
        parts = self.pairs("networks")[region].split("/")
        if len(parts) != 3:
            raise CannotDo("The option `networks` is `REGION=PROJECT/VPC/SUBNET,…`")
        headers = {"X-Project-Id": parts[0], **more.pop("headers", {})}
        return CloudCall(
            method=method, path=f"/v1/{parts[0]}/cloudservers{path}", region=region, headers=headers, **more
        )

    def check(self) -> Asking[str]:
        self.pairs("images")
        yield self._call("GET", self.regions[0], "/detail", query={"limit": "1", "offset": "1"})
        return f"Huawei Cloud accepts the key; regions: {', '.join(self.regions)}"

    def types(self) -> Asking[list[MachineType]]:
        prices = self.set_prices()
        found: list[MachineType] = []
        for region in self.regions:
            reply = yield self._call("GET", region, "/flavors")
            for each in reply.body["flavors"]:
                gpu = str((each.get("os_extra_specs") or {}).get(GPU, ""))
                if each["id"] in prices and gpu:
                    found.append(self._type(region, each, gpu, prices[each["id"]]))
        return found

    def _type(self, region: str, each: Any, gpu: str, prices: dict[str, int]) -> MachineType:
        count, _, name = gpu.partition("/")[0].partition("*")
        memory = gpu.rpartition("*")[2].strip().rstrip("Gg")
        return self.machine_type(
            each["id"],
            region,
            gpu=(name.strip(), int(memory) if memory.isdecimal() else 0),
            gpus=int(count),
            vcpus=int(each["vcpus"]),
            ram_bytes=int(each["ram"]) * MIB,
            prices=prices,
        )

    def machines(self, mark: str) -> Asking[list[Remote]]:
        found: list[Remote | None] = []
        for region in self.regions:
            page = 0
            while True:
                page += 1
                query = {"tags": f"{MARK}={mark}", "limit": str(PAGE), "offset": str(page)}
                reply = yield self._call("GET", region, "/detail", query=query)
                listed = reply.body["servers"]
                found += [self._remote(mark, region, each) for each in listed]
                if len(listed) < PAGE:
                    break
        return [each for each in found if each is not None]

    def rent(self, boot: Boot) -> Asking[Remote]:
        region = boot.rental.region
        headers = {"X-Client-Token": boot.token[:64]}
        body = {"server": self._server(boot)}
        reply = yield self._call("POST", region, "", headers=headers, body=body, act="launch")
        (id,) = reply.body["serverIds"]
        spot = boot.rental.mode == "spot"
        return self.remote(f"{region}/{id}", boot.token, Seen.PENDING, zone=region, is_spot=spot)

    def _server(self, boot: Boot) -> dict[str, Any]:
        region, rental = boot.rental.region, boot.rental
        _, vpc, subnet = self.pairs("networks")[region].split("/")
        bandwidth = {"size": 100, "sharetype": "PER", "chargemode": "traffic"}
        limit = rental.price_limit_micros_per_hour
        spot = {"marketType": "spot", **({"spotPrice": f"{limit / 10**6:.3f}"} if limit is not None else {})}
        ends = {"auto_terminate_time": boot.ends_at.strftime("%Y-%m-%dT%H:%M:%SZ")} if boot.ends_at else {}
        return {
            "name": boot.name,
            "flavorRef": rental.type,
            "imageRef": self.pairs("images").get(region, ""),
            "vpcid": vpc,
            "nics": [{"subnet_id": subnet}],
            "publicip": {
                "eip": {"iptype": "5_bgp", "bandwidth": bandwidth},
                "delete_on_termination": True,
            },
            "root_volume": {"volumetype": "SSD", "size": self.disk_gb},
            "server_tags": [{"key": MARK, "value": boot.mark}, {"key": TOKEN, "value": boot.token}],
            "user_data": base64.b64encode(boot.cloud_config.encode()).decode(),
            "extendparam": {"chargingMode": 0, **(spot if rental.mode == "spot" else {})},
            **({"availability_zone": rental.zone} if rental.zone else {}),
            **ends,
        }

    def give_back(self, remote_id: str) -> Asking[None]:
        region, _, id = remote_id.partition("/")
        body = {"servers": [{"id": id}], "delete_publicip": True, "delete_volume": True}
        call = self._call("POST", region, "/delete", body=body, act="change", accepts=frozenset({400, 404}))
        reply = yield call
        if (
            reply.status == 400
            and "not exist" not in self.said(reply)[1]
            and self.said(reply)[0] != "Ecs.0114"
        ):
            raise self.error(call, reply)

    def leftovers(self, mark: str) -> Asking[list[Leftover]]:
        """Disks without a machine, by its name. Addresses cannot be named at a launch, and go with the machine."""
        found: list[Leftover] = []
        for region in self.regions:
            offset = 0
            while True:
                query = {"status": "available", "limit": str(PAGE), "offset": str(offset)}
                reply = yield self._disk_call("GET", region, "/detail", query=query)
                listed = reply.body["volumes"]
                found += [
                    self.loose_disk(f"{region}/{each['id']}", each["size"], name=each["name"], token=token)
                    for each in listed
                    if (token := read_name(mark, each["name"], is_part=True))
                ]
                offset += len(listed)
                if len(listed) < PAGE:
                    break
        return found

    def remove_leftover(self, leftover: Leftover) -> Asking[None]:
        region, _, id = leftover.remote_id.partition("/")
        yield self._disk_call("DELETE", region, f"/{id}", act="change", accepts=GONE)

    def _disk_call(self, method: str, region: str, path: str, **more: Any) -> CloudCall:
        project = self.pairs("networks")[region].partition("/")[0]
        headers = {"X-Project-Id": project}
        path = f"/v2/{project}/cloudvolumes{path}"
        return CloudCall(method=method, path=path, region=region, service="disks", headers=headers, **more)

    def _remote(self, mark: str, region: str, each: Any) -> Remote | None:
        tags = dict(str(tag).partition("=")[::2] for tag in each.get("tags") or ())
        token = read_tags(mark, tags)
        if not token or each["status"] in ENDED:
            return None
        addresses = [one for several in (each.get("addresses") or {}).values() for one in several]
        public = [one["addr"] for one in addresses if one.get("OS-EXT-IPS:type") == "floating"]
        return self.remote(
            f"{region}/{each['id']}",
            token,
            SEEN.get(each["status"], Seen.PENDING),
            address=public[0] if public else "",
            doing=str((each.get("fault") or {}).get("message") or each["status"].lower()),
            zone=each.get("OS-EXT-AZ:availability_zone") or region,
            type=each["flavor"]["id"],
            since=time_of(each.get("created")),
            is_spot=(each.get("metadata") or {}).get("charging_mode") == "2",
        )
