"""A fake of Azure's resource manager, of its token service and of its price list."""

import base64
import re
from collections.abc import Mapping
from typing import Any, ClassVar

from tests.fakes.base import FakeCloud, FakeMachine
from tests.fakes.swagger import swagger_judge

from teraflock.drivers.clouds.marks import machine_name

TYPE = "Standard_NC4as_T4_v3"
PRICES = {"Regular": 0.526, "Spot": 0.158}
GROUP = "/subscriptions/sub/resourceGroups/teraflock/providers/Microsoft."
SPECS = (
    "azure-compute-2019-07-01-swagger.yaml",
    "azure-compute-skus-2019-04-01-swagger.yaml",
    "azure-network-networkInterface-2018-01-01-swagger.yaml",
    "azure-network-networkSecurityGroup-2019-08-01-swagger.yaml",
    "azure-network-publicIpAddress-2019-08-01-swagger.yaml",
    "azure-network-virtualNetwork-2019-08-01-swagger.yaml",
)


class FakeAzure(FakeCloud):
    services: ClassVar = ("token", "prices")
    public: ClassVar = ("/token", "/prices")
    unjudged: ClassVar = ("/token", "/prices", f"{GROUP}Compute/disks")
    secret: ClassVar = "tenant:client:password"
    options: ClassVar = {"subscription": "sub"}
    troubles: ClassVar = frozenset({"over_quota", "broke"})

    @classmethod
    def judge_of(cls) -> Any:
        return swagger_judge(*SPECS, drop=_without_newer)

    def __init__(self, *words: Any, **options: Any) -> None:
        super().__init__(*words, **options)
        self.networks: dict[str, Any] = {}
        self.loose: dict[str, dict[str, Any]] = {"network-interface": {}, "address": {}}

    leaves: ClassVar = ("disk", "network-interface", "address")

    def leave(self, kind: str, mark: str, token: str) -> None:
        name = machine_name(mark, token)
        if kind == "disk":
            self.disks[name] = {"name": name, "location": "eastus", "properties": {"diskSizeGB": 128}}
        else:
            self.loose[kind][name] = {"name": name, "location": "eastus", "properties": {}}

    def is_signed(self, headers: Mapping[str, str]) -> bool:
        return headers.get("Authorization") == "Bearer token-of-azure"

    def unauthorised(self) -> tuple[int, Any]:
        return _error(401, "InvalidAuthenticationToken", "The access token is invalid.")

    def too_many(self) -> Any:
        return _error(429, "TooManyRequests", "The request is being throttled.")[1]

    def route(self, method: str, path: str, query: Mapping[str, str], body: Any) -> tuple[int, Any]:
        if path == "/token/tenant/oauth2/v2.0/token":
            assert body["client_secret"] == "password"
            return 200, {"access_token": "token-of-azure", "expires_in": 3599}
        if path == "/prices/api/retail/prices":
            assert "Authorization" not in self.headers, "the price list is public"
            return 200, self._prices(query)
        if path.endswith("/Microsoft.Compute/skus"):
            return 200, {"value": [_sku(query["$filter"])]}
        kind, _, rest = path.removeprefix(GROUP).partition("/")
        noun, _, name = rest.partition("/")
        if (kind, noun) == ("Compute", "disks"):
            return self._disks(method, name)
        if kind == "Compute":
            return self._compute(method, name, body)
        return self._network(method, noun, name, path, body)

    def _prices(self, query: Mapping[str, str]) -> Any:
        region = re.search(r"armRegionName eq '(\w+)'", query["$filter"])
        assert region is not None
        items = [
            _price("NC4as T4 v3", PRICES["Regular"]),
            _price("NC4as T4 v3 Spot", PRICES["Spot"]),
            _price("NC4as T4 v3 Low Priority", 0.1),
            {**_price("NC4as T4 v3", 0.9), "productName": "Virtual Machines NCasT4_v3 Series Windows"},
        ]
        first = int(query.get("$skip", "0"))
        page = items[first : first + 2]
        return {"Items": page, "NextPageLink": "https://x/?$skip=2" if first + 2 < len(items) else None}

    def _disks(self, method: str, name: str) -> tuple[int, Any]:
        if method == "DELETE":
            return (204, None) if self.disks.pop(name, None) is None else (202, None)
        return 200, {"value": list(self.disks.values())}

    def _compute(self, method: str, rest: str, body: Any) -> tuple[int, Any]:
        name, _, act = rest.partition("/")
        if not name:
            return 200, {"value": [self._vm(each) for each in self.listed()]}
        if method == "PUT":
            return self._put(name, body)
        found = self.machines.get(name)
        if found is None or found.ended is not None:
            return _error(404, "ResourceNotFound", f"The Resource '{name}' was not found.")
        if method == "DELETE":
            self.end(name)
        found.stopped = act == "deallocate"
        return 202 if method == "DELETE" else 200, None

    def _put(self, name: str, body: Any) -> tuple[int, Any]:
        if self.broke:
            return _error(409, "ReadOnlyDisabledSubscription", "The subscription is disabled.")
        if self.over_quota:
            return _error(409, "OperationNotAllowed", "Operation could not be completed: exceeding quota.")
        if body["location"] in self.sold_out:
            return _error(409, "SkuNotAvailable", "The requested size is not available in this location.")
        found = self.machines.get(name)
        if found is not None and found.ended is None:
            return 200, self._vm(found)
        inside = body["properties"]
        made = self.launch(
            id=name,
            type=inside["hardwareProfile"]["vmSize"],
            region=body["location"],
            label=body,
            boot=base64.b64decode(inside["osProfile"]["customData"]).decode(),
            keys=[each["keyData"] for each in inside["osProfile"]["linuxConfiguration"]["ssh"]["publicKeys"]],
            gpus=1,
            gpu_memory_bytes=16 << 30,
            micros_per_hour=round(PRICES[inside["priority"]] * 10**6),
            spot=inside["priority"] == "Spot",
        )
        return 201, self._vm(made)

    def _network(self, method: str, noun: str, name: str, path: str, body: Any) -> tuple[int, Any]:
        if noun == "publicIPAddresses" and not name:
            used = [self._address(each) for each in self.listed() if self.is_up(each)]
            return 200, {"value": [*used, *self.loose["address"].values()]}
        if noun == "networkInterfaces" and not name:
            return 200, {"value": list(self.loose["network-interface"].values())}
        if noun in ("publicIPAddresses", "networkInterfaces") and method == "DELETE":
            kind = "address" if noun == "publicIPAddresses" else "network-interface"
            return (204, None) if self.loose[kind].pop(name, None) is None else (202, None)
        if method == "PUT":
            created = path not in self.networks
            self.networks[path] = {"id": path, "name": name, **body}
            return 201 if created else 200, self.networks[path]
        if path not in self.networks:
            return _error(404, "ResourceNotFound", name)
        return 200, self.networks[path]

    def _address(self, each: FakeMachine) -> Any:
        used_by = f"{GROUP}Network/networkInterfaces/{each.id}/ipConfigurations/one"
        inside = {"ipAddress": each.address, "ipConfiguration": {"id": used_by}}
        return {
            "id": f"{GROUP}Network/publicIPAddresses/{each.id}-1f",
            "name": f"{each.id}-1f",
            "properties": inside,
        }

    def _vm(self, each: FakeMachine) -> Any:
        up = self.is_up(each)
        power = "deallocated" if each.stopped else "running" if up else "starting"
        asked = each.label["properties"]
        inside = {
            "vmId": "1",
            "provisioningState": "Failed" if each.dead else "Succeeded" if up or each.stopped else "Creating",
            "hardwareProfile": asked["hardwareProfile"],
            "priority": asked["priority"],
            "instanceView": {"statuses": [{"code": f"PowerState/{power}", "level": "Info"}]},
            "timeCreated": self.told(each).isoformat(),
        }
        name = each.id
        place = {"id": f"{GROUP}Compute/virtualMachines/{name}", "name": name, "location": each.region}
        return {
            **place,
            "type": "Microsoft.Compute/virtualMachines",
            "tags": each.label["tags"],
            "properties": inside,
        }


def _without_newer(body: Any) -> Any:
    """What the description of 2019 does not have yet."""
    if isinstance(body, dict):
        newer = (
            "networkInterfaceConfigurations",
            "networkApiVersion",
            "deleteOption",
            "timeCreated",
            "$expand",
        )
        kept = {name: _without_newer(value) for name, value in body.items() if name not in newer}
        return {**kept, "vmSize": "Standard_NC6s_v3"} if "vmSize" in kept else kept
    return [_without_newer(each) for each in body] if isinstance(body, list) else body


def _sku(filter: str) -> Any:
    region = filter.partition("'")[2].rstrip("'")
    able = {"vCPUs": "4", "MemoryGB": "28", "GPUs": "1"}
    return {
        "resourceType": "virtualMachines",
        "name": TYPE,
        "locations": [region],
        "capabilities": [{"name": name, "value": value} for name, value in able.items()],
        "restrictions": [],
    }


def _price(sku: str, amount: float) -> Any:
    product = "Virtual Machines NCasT4_v3 Series"
    return {
        "armSkuName": TYPE, "skuName": sku, "productName": product, "retailPrice": amount, "unitOfMeasure": "1 Hour",
    }  # fmt: skip


def _error(status: int, code: str, message: str) -> tuple[int, Any]:
    return status, {"error": {"code": code, "message": message}}
