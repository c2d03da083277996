"""Baidu Cloud BCC: virtual machines with cloud-init and launch tokens. API `v2`. On-demand only.

The public address goes with the machine. The operator names the regions, an image for each, and the prices. Requests
were compared with the SDK's.
"""

import base64
from typing import Any, ClassVar, Final

from teraflock.base.quantities import GIB
from teraflock.drivers.clouds.calls import GONE, Asking, CloudCall, delete_call
from teraflock.drivers.clouds.errors import ErrorCodes
from teraflock.drivers.clouds.marks import MARK, TOKEN, Boot, read_name, read_tags
from teraflock.drivers.clouds.model import CURRENCY_OPTION, DISK_OPTION, PRICES_OPTION, CloudApi
from teraflock.drivers.clouds.signatures import BaiduSigner
from teraflock.drivers.clouds.sound import time_of
from teraflock.drivers.rented import Remote
from teraflock.instance.account.model import Leftover
from teraflock.instance.driver import MachineType, Seen

SEEN: Final = {
    "Starting": Seen.PENDING,
    "Running": Seen.RUNNING,
    "Stopping": Seen.PENDING,
    "Stopped": Seen.BROKEN,
    "Deleting": Seen.PENDING,
    "Error": Seen.BROKEN,
    "Expired": Seen.BROKEN,
}
ENDED: Final = ("Deleted",)
"""`Deleted` is missing on purpose. We stop none."""


class BaiduCloud(CloudApi):
    kind = "baidu"
    title = "Baidu Cloud"
    signs = BaiduSigner
    base_url = "https://bcc.{region}.baidubce.com"
    services: ClassVar = {"eip": "https://eip.{region}.baidubce.com"}
    currency = "CNY"
    codes = ErrorCodes(
        no_room=["ResourceNotEnough*", "StockNotEnough*", "sold out", "Instance.FlavorSoldOut"],
        quota=["*QuotaExceed*", "*ExceedLimit*"],
        money=["PaymentFailed*", "BalanceNotEnough*", "Account.BalanceNotEnough"],
        busy=["RequestLimit*", "InternalError"],
        access=["AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "RequestExpired"],
    )
    options: ClassVar = {
        "prices": PRICES_OPTION,
        "images": "For each region an Ubuntu image with NVIDIA drivers: `REGION=ID,…`. Required",
        "disk_gb": f"{DISK_OPTION}. Default: 100",
        "currency": f"{CURRENCY_OPTION}. Default: `CNY`",
    }
    defaults: ClassVar = {"disk_gb": "100"}

    @property
    def regions(self) -> list[str]:
        return list(self.pairs("images"))

    def check(self) -> Asking[str]:
        yield CloudCall(method="GET", path="/v2/instance", query={"maxKeys": "1"}, region=self.regions[0])
        return f"Baidu Cloud accepts the key; regions: {', '.join(self.regions)}"

    def types(self) -> Asking[list[MachineType]]:
        prices = self.set_prices()
        found: dict[tuple[str, str], MachineType] = {}
        for region in self.regions:
            for _, each in (yield from self._flavors(region)):
                if each["spec"] in prices and each.get("gpuCardCount"):
                    found[each["spec"], region] = self._type(region, each, prices[each["spec"]])
        return list(found.values())

    def _flavors(self, region: str) -> Asking[list[tuple[str, Any]]]:
        """What is for sale, with its zone."""
        reply = yield CloudCall(method="GET", path="/v2/instance/flavorSpec", region=region)
        return [
            (str(zone["zoneName"]), each)
            for zone in reply.body["zoneResources"]
            for group in zone["bccResources"]["flavorGroups"]
            for each in group["flavors"]
        ]

    def _type(self, region: str, each: Any, prices: dict[str, int]) -> MachineType:
        return self.machine_type(
            each["spec"],
            region,
            gpu=(str(each["gpuCardType"]).replace("-", " "), 0),
            gpus=int(each["gpuCardCount"]),
            vcpus=int(each["cpuCount"]),
            ram_bytes=int(each["memoryCapacityInGB"]) * GIB,
            prices=prices,
        )

    def machines(self, mark: str) -> Asking[list[Remote]]:
        found: list[Remote | None] = []
        for region in self.regions:
            listed = yield from self._every(region, "instances", "/v2/instance")
            found += [self._remote(mark, region, each) for each in listed]
        return [each for each in found if each is not None]

    def rent(self, boot: Boot) -> Asking[Remote]:
        """A launch names a zone: all zones of the region that sell the type are tried in turn."""
        rental = boot.rental
        flavors = yield from self._flavors(rental.region)
        zones = (
            [rental.zone] if rental.zone else [zone for zone, each in flavors if each["spec"] == rental.type]
        )

        def rent_in(zone: str) -> Asking[Remote]:
            reply = yield CloudCall(
                method="POST",
                path="/v2/instanceBySpec",
                query={"clientToken": f"{boot.token}-{zone}"[-64:]},
                body=self._body(boot, zone),
                region=rental.region,
                act="launch",
            )
            (id,) = reply.body["instanceIds"]
            return self.remote(f"{rental.region}/{id}", boot.token, Seen.PENDING, zone=rental.region)

        nowhere = f"`{rental.type}` is not for sale in {rental.region}"
        return (yield from self.in_first_with_room(zones, rent_in, nowhere))

    def _body(self, boot: Boot, zone: str) -> dict[str, Any]:
        rental = boot.rental
        return {
            "spec": rental.type,
            "zoneName": zone,
            "imageId": self.pairs("images").get(rental.region, ""),
            "billing": {"paymentTiming": "Postpaid"},
            "rootDiskSizeInGb": self.disk_gb,
            "rootDiskStorageType": "cloud_hp1",
            "purchaseCount": 1,
            "name": boot.machine.hostname,
            "networkCapacityInMbps": 100,
            "eipName": boot.name,
            "internetChargeType": "TRAFFIC_POSTPAID_BY_HOUR",
            "isEipAutoRelatedDelete": True,
            "userData": base64.b64encode(boot.cloud_config.encode()).decode(),
            "tags": [
                {"tagKey": MARK, "tagValue": boot.mark},
                {"tagKey": TOKEN, "tagValue": boot.token},
            ],
            "relationTag": True,  # its disk has the tags, too
        }

    def give_back(self, remote_id: str) -> Asking[None]:
        region, _, id = remote_id.partition("/")
        body = {"relatedReleaseFlag": True, "deleteCdsSnapshotFlag": True, "deleteRelatedEnisFlag": True}
        path, accepts = f"/v2/instance/{id}", frozenset({404})
        yield CloudCall(method="POST", path=path, body=body, region=region, act="change", accepts=accepts)

    def leftovers(self, mark: str) -> Asking[list[Leftover]]:
        """Disks by their tags, and addresses by their names, that no machine has."""
        found: list[Leftover] = []
        for region in self.regions:
            disks = yield from self._every(region, "volumes", "/v2/volume")
            found += [
                self.loose_disk(
                    f"{region}/{each['id']}", each["diskSizeInGB"], name=each["id"], token=_token(mark, each)
                )
                for each in disks
                if not each.get("attachments")
            ]
            addresses = yield from self._every(region, "eipList", "/v1/eip", service="eip")
            found += [
                Leftover(
                    kind="address",
                    remote_id=f"{region}/{each['eip']}",
                    name=each["eip"],
                    token=read_name(mark, each.get("name") or ""),
                )
                for each in addresses
                if not each.get("instanceId")
            ]
        return [each for each in found if each.token]

    def _every(self, region: str, name: str, path: str, **more: Any) -> Asking[list[Any]]:
        found: list[Any] = []
        marker = ""
        while True:
            query = {"maxKeys": "1000", **({"marker": marker} if marker else {})}
            reply = yield CloudCall(method="GET", path=path, query=query, region=region, **more)
            found += reply.body[name]
            marker = str(reply.body.get("nextMarker") or "") if reply.body["isTruncated"] else ""
            if not marker:
                return found

    def remove_leftover(self, leftover: Leftover) -> Asking[None]:
        region, _, id = leftover.remote_id.partition("/")
        if leftover.kind == "address":
            yield delete_call(f"/v1/eip/{id}", region=region, service="eip")
            return
        path, body = f"/v2/volume/{id}", {"autoSnapshot": "on", "manualSnapshot": "on", "recycle": "off"}
        yield CloudCall(method="POST", path=path, body=body, region=region, act="change", accepts=GONE)

    def _remote(self, mark: str, region: str, each: Any) -> Remote | None:
        token = _token(mark, each)
        if not token or each["status"] in ENDED:
            return None
        return self.remote(
            f"{region}/{each['id']}",
            token,
            SEEN.get(each["status"], Seen.PENDING),
            address=each.get("publicIp") or "",
            doing=each["status"].lower(),
            zone=f"{region}/{each.get('zoneName', '')}",
            type=each.get("spec") or "",
            since=time_of(each.get("createTime")),
        )


def _token(mark: str, each: Any) -> str:
    """The token in the tags of a machine or a disk of ours."""
    return read_tags(mark, {tag["tagKey"]: tag["tagValue"] for tag in each.get("tags") or ()})
