"""Baidu Cloud BCC: virtual machines with cloud-init and launch tokens. API `v2`. On-demand only.

The public address goes with the machine. The operator names the regions, an image for each, and the prices. Requests
were compared with the SDK's.
"""

import base64
from datetime import datetime
from typing import Any, ClassVar, Final

from teraflock.base.quantities import GIB
from teraflock.drivers.clouds.calls import Asking, CloudCall
from teraflock.drivers.clouds.errors import ErrorCodes
from teraflock.drivers.clouds.marks import MARK, TOKEN, Boot, read_tags
from teraflock.drivers.clouds.model import CURRENCY_OPTION, DISK_OPTION, PRICES_OPTION, CloudApi
from teraflock.drivers.clouds.signatures import BaiduSigner
from teraflock.drivers.clouds.signing import Signer
from teraflock.drivers.rented import Remote
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
    base_url = "https://bcc.{region}.baidubce.com"
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

    @classmethod
    def signer(cls, secret: str) -> Signer:
        return BaiduSigner(secret)

    @property
    def regions(self) -> list[str]:
        return list(self.pairs("images"))

    def check(self) -> Asking[str]:
        yield self._page(self.regions[0], "", 1)
        return f"Baidu Cloud accepts the key; regions: {', '.join(self.regions)}"

    def _page(self, region: str, marker: str, most: int = 1000) -> CloudCall:
        query = {"maxKeys": str(most), **({"marker": marker} if marker else {})}
        return CloudCall(method="GET", path="/v2/instance", query=query, region=region)

    def types(self) -> Asking[list[MachineType]]:
        prices = self.set_prices()
        found: dict[tuple[str, str], MachineType] = {}
        for region in self.regions:
            reply = yield CloudCall(method="GET", path="/v2/instance/flavorSpec", region=region)
            for zone in reply.body["zoneResources"]:
                for group in zone["bccResources"]["flavorGroups"]:
                    for each in group["flavors"]:
                        if each["spec"] in prices and each.get("gpuCardCount"):
                            made = self._type(region, each, prices[each["spec"]])
                            found[each["spec"], region] = made
        return list(found.values())

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
            marker = ""
            while True:
                reply = yield self._page(region, marker)
                found += [self._remote(mark, region, each) for each in reply.body["instances"]]
                marker = str(reply.body.get("nextMarker") or "") if reply.body["isTruncated"] else ""
                if not marker:
                    break
        return [each for each in found if each is not None]

    def rent(self, boot: Boot) -> Asking[Remote]:
        rental = boot.rental
        body = {
            "spec": rental.type,
            "imageId": self.pairs("images").get(rental.region, ""),
            "billing": {"paymentTiming": "Postpaid"},
            "rootDiskSizeInGb": self.disk_gb,
            "rootDiskStorageType": "cloud_hp1",
            "purchaseCount": 1,
            "name": boot.machine.hostname,
            "networkCapacityInMbps": 100,
            "internetChargeType": "TRAFFIC_POSTPAID_BY_HOUR",
            "isEipAutoRelatedDelete": True,
            "userData": base64.b64encode(boot.cloud_config.encode()).decode(),
            "tags": [
                {"tagKey": MARK, "tagValue": boot.mark},
                {"tagKey": TOKEN, "tagValue": boot.token},
            ],
            **({"zoneName": rental.zone} if rental.zone else {}),
        }
        query = {"clientToken": boot.token[:64]}
        path = "/v2/instanceBySpec"
        reply = yield CloudCall(
            method="POST", path=path, query=query, body=body, region=rental.region, act="launch"
        )
        (id,) = reply.body["instanceIds"]
        return self.remote(f"{rental.region}/{id}", boot.token, Seen.PENDING, zone=rental.region)

    def give_back(self, remote_id: str) -> Asking[None]:
        region, _, id = remote_id.partition("/")
        body = {"relatedReleaseFlag": True, "deleteCdsSnapshotFlag": True, "deleteRelatedEnisFlag": True}
        path, accepts = f"/v2/instance/{id}", frozenset({404})
        yield CloudCall(method="POST", path=path, body=body, region=region, act="change", accepts=accepts)

    def _remote(self, mark: str, region: str, each: Any) -> Remote | None:
        tags = {tag["tagKey"]: tag["tagValue"] for tag in each.get("tags") or ()}
        token = read_tags(mark, tags)
        if not token or each["status"] in ENDED:
            return None
        created = each.get("createTime")
        return self.remote(
            f"{region}/{each['id']}",
            token,
            SEEN.get(each["status"], Seen.PENDING),
            address=each.get("publicIP") or each.get("publicIp") or "",
            doing=each["status"].lower(),
            zone=f"{region}/{each.get('zoneName', '')}",
            type=each.get("spec") or "",
            since=datetime.fromisoformat(created.replace("Z", "+00:00")) if created else None,
        )
