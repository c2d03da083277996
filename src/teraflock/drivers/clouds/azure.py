"""Azure: virtual machines with cloud-init, stop and start, and spot. API version 2023-03-01.

One request makes a machine with its network interface, address and disk, and all of them go with it. The name contains
the launch token, and putting the same name twice makes one machine. The resource group must exist: the account needs no
rights outside it, except to list machine sizes.
"""

import base64
from datetime import timedelta
from typing import Any, ClassVar, Final

from teraflock.drivers.clouds.azure_types import gpu_types
from teraflock.drivers.clouds.calls import GONE, Asking, CloudCall, delete_call
from teraflock.drivers.clouds.errors import CannotDo, ErrorCodes
from teraflock.drivers.clouds.marks import MARK, Boot, plain, read_name
from teraflock.drivers.clouds.model import DISK_OPTION, CloudApi, Pace
from teraflock.drivers.clouds.notices import AZURE_NOTICE
from teraflock.drivers.clouds.prices import disk_price
from teraflock.drivers.clouds.sound import time_of, token_of_page
from teraflock.drivers.clouds.tokens import AzureSigner
from teraflock.drivers.rented import Remote
from teraflock.instance.account.model import Leftover
from teraflock.instance.driver import Capability, MachineType, Seen

COMPUTE: Final = {"api-version": "2023-03-01"}
NETWORK: Final = {"api-version": "2022-11-01"}
IMAGE: Final = "microsoft-dsvm:ubuntu-hpc:2204:latest"
USER_DATA_BYTES_MAX: Final = 65_535
DISKS: Final = {"api-version": "2023-01-02"}
LEFT: Final = {
    "disk": "Compute/disks",
    "network-interface": "Network/networkInterfaces",
    "address": "Network/publicIPAddresses",
}
"""What a machine may leave behind. An address can only be deleted after its interface."""
ADDRESS_MICROS: Final = 5_000
"""Azure's list price of a standard public address, per hour."""
POWER: Final = {
    "PowerState/running": Seen.RUNNING,
    "PowerState/deallocated": Seen.STOPPED,
    "PowerState/stopped": Seen.STOPPED,
}
SSH_RULE: Final = {
    "protocol": "Tcp",
    "sourceAddressPrefix": "*",
    "sourcePortRange": "*",
    "destinationAddressPrefix": "*",
    "destinationPortRange": "22",
    "access": "Allow",
    "priority": 100,
    "direction": "Inbound",
}


class AzureCloud(CloudApi):
    kind = "azure"
    title = "Azure"
    signs = AzureSigner
    base_url = "https://management.azure.com"
    services: ClassVar = {"token": "https://login.microsoftonline.com", "prices": "https://prices.azure.com"}
    login = "ubuntu"
    pace = Pace(call_seconds=0.2, launch_seconds=1.0)
    capabilities = frozenset({Capability.STOP})
    types_age_max = timedelta(hours=6)
    notice = AZURE_NOTICE
    codes = ErrorCodes(
        no_room=[
            "SkuNotAvailable",
            "AllocationFailed",
            "ZonalAllocationFailed",
            "OverconstrainedAllocationRequest",
            "SpotPriceGreaterThanProvidedMaxPrice",
            "OverconstrainedZonalAllocationRequest",
        ],
        quota=["QuotaExceeded", "OperationNotAllowed"],
        money=["ReadOnlyDisabledSubscription", "SubscriptionNotRegistered"],
        busy=["TooManyRequests", "Conflict", "OperationPreempted", "RetryableError"],
        access=[
            "AuthorizationFailed",
            "InvalidAuthenticationToken*",
            "ExpiredAuthenticationToken",
            "invalid_client",
        ],
    )
    options: ClassVar = {
        "subscription": "The id of the subscription. Required",
        "resource_group": "The resource group for all machines. It must exist. Default: `teraflock`",
        "regions": "Regions to use, separated by commas. Default: `eastus,westus3`",
        "image": f"The image as `PUBLISHER:OFFER:SKU:VERSION`. Default: `{IMAGE}`",
        "disk_gb": f"{DISK_OPTION}. Default: 128",
    }
    defaults: ClassVar = {
        "resource_group": "teraflock",
        "regions": "eastus,westus3",
        "image": IMAGE,
        "disk_gb": "128",
    }

    @property
    def _subscription(self) -> str:
        return f"/subscriptions/{self.needed('subscription')}"

    def _path(self, kind: str, name: str = "") -> str:
        group = f"{self._subscription}/resourceGroups/{self.option('resource_group')}"
        return f"{group}/providers/Microsoft.{kind}{f'/{name}' if name else ''}"

    def _machine(self, name: str) -> str:
        return self._path("Compute/virtualMachines", name)

    def check(self) -> Asking[str]:
        yield CloudCall(method="GET", path=self._path("Compute/virtualMachines"), query=COMPUTE)
        return f"Azure accepts the credentials; regions: {', '.join(self.regions)}"

    def types(self) -> Asking[list[MachineType]]:
        found = yield from gpu_types(self._subscription, self.regions, self.disk_bytes)
        return found

    def machines(self, mark: str) -> Asking[list[Remote]]:
        query = {**COMPUTE, "$expand": "instanceView"}
        listed = yield from self._every(self._path("Compute/virtualMachines"), query)
        ours = [each for each in listed if read_name(mark, each["name"])]
        addresses = (yield from self._addresses()) if ours else {}
        return [self._remote(mark, each, addresses) for each in ours]

    def _every(self, path: str, query: dict[str, str]) -> Asking[list[Any]]:
        """All pages. The next one is a whole address, of which only the token is used."""
        found: list[Any] = []
        while True:
            reply = yield CloudCall(method="GET", path=path, query=query)
            found += reply.body["value"]
            token = token_of_page(str(reply.body.get("nextLink") or ""), "$skiptoken")
            if not token:
                return found
            query = {**query, "$skiptoken": token}

    def _addresses(self) -> Asking[dict[str, str]]:
        """Public addresses by the name of the machine that has them."""
        listed = yield from self._every(self._path("Network/publicIPAddresses"), dict(NETWORK))
        return {_owner(each): each["properties"].get("ipAddress") or "" for each in listed}

    def rent(self, boot: Boot) -> Asking[Remote]:
        subnet, group = yield from self._network(boot)
        body = self._body(boot, subnet, group)
        path = self._machine(boot.name)
        yield CloudCall(method="PUT", path=path, query=COMPUTE, body=body, act="launch")
        spot = boot.rental.mode == "spot"
        return self.remote(boot.name, boot.token, Seen.PENDING, zone=boot.rental.region, is_spot=spot)

    def _network(self, boot: Boot) -> Asking[tuple[str, str]]:
        """The ids of our subnet and security group in the region, created if they do not exist."""
        region, name = boot.rental.region, f"teraflock-{plain(boot.mark)}-{boot.rental.region}"
        network = self._path("Network/virtualNetworks", name)
        group = self._path("Network/networkSecurityGroups", name)
        found = yield CloudCall(method="GET", path=network, query=NETWORK, accepts=GONE)
        if found.status == 404:
            tags = {MARK: boot.mark}
            rule = {"name": "ssh", "properties": SSH_RULE}
            body: dict[str, Any] = {"location": region, "tags": tags, "properties": {"securityRules": [rule]}}
            yield CloudCall(method="PUT", path=group, query=NETWORK, body=body, act="change")
            subnet = {"addressPrefix": "10.77.0.0/20", "networkSecurityGroup": {"id": group}}
            space = {"addressPrefixes": ["10.77.0.0/16"]}
            inside = {"addressSpace": space, "subnets": [{"name": "machines", "properties": subnet}]}
            body = {"location": region, "tags": tags, "properties": inside}
            yield CloudCall(method="PUT", path=network, query=NETWORK, body=body, act="change")
        return f"{network}/subnets/machines", group

    def _body(self, boot: Boot, subnet: str, group: str) -> dict[str, Any]:
        parts = self.option("image").split(":")
        if len(parts) != 4 or not all(parts):
            raise CannotDo("The option `image` is `PUBLISHER:OFFER:SKU:VERSION`")
        image = dict(zip(("publisher", "offer", "sku", "version"), parts, strict=True))
        disk = {
            "createOption": "FromImage",
            "deleteOption": "Delete",
            "diskSizeGB": self.disk_gb,
            "name": boot.name,
        }
        key = {"path": f"/home/{self.login}/.ssh/authorized_keys", "keyData": boot.login_key}
        linux = {"disablePasswordAuthentication": True, "ssh": {"publicKeys": [key]}}
        system = {
            "computerName": boot.name,
            "adminUsername": self.login,
            "linuxConfiguration": linux,
            "customData": base64.b64encode(boot.cloud_config.encode()).decode(),
        }
        return {
            "location": boot.rental.region,
            "tags": boot.tags,
            "properties": {
                "hardwareProfile": {"vmSize": boot.rental.type},
                "storageProfile": {"imageReference": image, "osDisk": disk},
                "osProfile": system,
                "networkProfile": _interface(boot.name, subnet, group),
                **_spot(boot),
            },
        }

    def give_back(self, remote_id: str) -> Asking[None]:
        yield delete_call(self._machine(remote_id), query=COMPUTE)

    def stop(self, remote_id: str) -> Asking[None]:
        """Deallocate: a machine that is only powered off stays billed."""
        path = f"{self._machine(remote_id)}/deallocate"
        yield CloudCall(method="POST", path=path, query=COMPUTE, act="change")

    def start(self, remote_id: str) -> Asking[None]:
        yield CloudCall(method="POST", path=f"{self._machine(remote_id)}/start", query=COMPUTE, act="change")

    def leftovers(self, mark: str) -> Asking[list[Leftover]]:
        """Disks, interfaces and addresses without a machine. Azure deletes them with it, if all is well."""
        found: list[Leftover] = []
        for noun, path in LEFT.items():
            listed = yield from self._every(self._path(path), _version(path))
            found += [
                Leftover(
                    kind=noun,
                    remote_id=f"{path}/{each['name']}",
                    name=each["name"],
                    token=token,
                    price_micros_per_hour=_price(noun, each["properties"]),
                    currency=self.currency,
                )
                for each in listed
                if (token := read_name(mark, each["name"], is_part=True)) and not each.get("managedBy")
            ]
        return found

    def remove_leftover(self, leftover: Leftover) -> Asking[None]:
        yield delete_call(self._path(leftover.remote_id), query=_version(leftover.remote_id))

    def _remote(self, mark: str, each: Any, addresses: dict[str, str]) -> Remote:
        inside = each["properties"]
        codes = [status["code"] for status in (inside.get("instanceView") or {}).get("statuses") or ()]
        state = inside.get("provisioningState", "")
        power = next((POWER[code] for code in codes if code in POWER), Seen.PENDING)
        return self.remote(
            each["name"],
            read_name(mark, each["name"]),
            Seen.BROKEN if state == "Failed" else power if state == "Succeeded" else Seen.PENDING,
            address=addresses.get(each["name"], ""),
            doing=", ".join([state, *codes]),
            zone=each["location"],
            type=inside["hardwareProfile"]["vmSize"],
            since=time_of(inside.get("timeCreated")),
            is_spot=inside.get("priority") == "Spot",
        )


def _spot(boot: Boot) -> dict[str, Any]:
    if boot.rental.mode != "spot":
        return {"priority": "Regular"}
    limit = boot.rental.price_limit_micros_per_hour
    price = -1 if limit is None else limit / 10**6
    return {"priority": "Spot", "evictionPolicy": "Delete", "billingProfile": {"maxPrice": price}}


def _interface(name: str, subnet: str, group: str) -> dict[str, Any]:
    """An interface with a public address. Both are deleted with the machine."""
    address = {
        "name": name,
        "sku": {"name": "Standard"},
        "properties": {"deleteOption": "Delete", "publicIPAllocationMethod": "Static"},
    }
    inside = {"subnet": {"id": subnet}, "publicIPAddressConfiguration": address}
    interface = {
        "name": name,
        "properties": {
            "primary": True,
            "deleteOption": "Delete",
            "networkSecurityGroup": {"id": group},
            "ipConfigurations": [{"name": "one", "properties": inside}],
        },
    }
    return {"networkApiVersion": NETWORK["api-version"], "networkInterfaceConfigurations": [interface]}


def _owner(address: Any) -> str:
    """The machine of an address: the interface that has it is named after the machine."""
    used_by = str((address["properties"].get("ipConfiguration") or {}).get("id", ""))
    interface = used_by.partition("/networkInterfaces/")[2].partition("/")[0]
    return interface or str(address["name"])


def _version(path: str) -> dict[str, str]:
    return dict(DISKS if path.startswith(LEFT["disk"]) else NETWORK)


def _price(noun: str, inside: Any) -> int | None:
    if noun == "disk":
        return disk_price("azure", int(inside["diskSizeGB"]))
    return ADDRESS_MICROS if noun == "address" else None
