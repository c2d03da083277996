"""Oracle Cloud: virtual machines with cloud-init, launch tokens and preemptible capacity. API 20160918.

Capacity differs between the availability domains of a region: all are tried in turn. A stopped machine with GPUs stays
billed, so machines are not stopped. The operator names a subnet and an image for each region, and the prices.
"""

import base64
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from teraflock.base.quantities import GIB
from teraflock.drivers.clouds.calls import Asking, CloudCall, delete_call
from teraflock.drivers.clouds.errors import ErrorCodes
from teraflock.drivers.clouds.marks import Boot, read_name, read_tags
from teraflock.drivers.clouds.model import DISK_OPTION, PRICES_OPTION, CloudApi
from teraflock.drivers.clouds.signatures import OracleSigner, oracle_fields
from teraflock.drivers.clouds.sound import time_of
from teraflock.drivers.rented import Remote
from teraflock.instance.account.model import Leftover
from teraflock.instance.driver import MachineType, Seen

API: Final = "/20160918"
SEEN: Final = {
    "PROVISIONING": Seen.PENDING,
    "STARTING": Seen.PENDING,
    "RUNNING": Seen.RUNNING,
    "STOPPING": Seen.PENDING,
    "STOPPED": Seen.BROKEN,
    "TERMINATING": Seen.PENDING,
    "MOVING": Seen.PENDING,
    "CREATING_IMAGE": Seen.PENDING,
}
ENDED: Final = "TERMINATED"
"""`TERMINATED` is missing on purpose: such a machine no longer exists. We stop none."""
THREADS_PER_OCPU: Final = 2
BOOT_VOLUME: Final = " (Boot Volume)"
"""Oracle names the disk of a machine after it, with this ending."""


class OracleCloud(CloudApi):
    kind = "oci"
    title = "Oracle Cloud"
    signs = OracleSigner
    base_url = "https://iaas.{region}.oraclecloud.com"
    services: ClassVar = {"identity": "https://identity.{region}.oraclecloud.com"}
    login = "ubuntu"
    codes = ErrorCodes(
        no_room=["Out of host capacity", "OutOfHostCapacity", "out of capacity"],
        quota=["LimitExceeded", "QuotaExceeded"],
        money=["account is suspended", "billing is suspended"],
        busy=["TooManyRequests", "IncorrectState"],
        access=["NotAuthenticated", "NotAuthorizedOrNotFound", "SignUpRequired"],
    )
    options: ClassVar = {
        "prices": PRICES_OPTION,
        "networks": "For each region a public subnet that admits SSH: `REGION=SUBNET_OCID,…`. Required",
        "images": "For each region an Ubuntu image with NVIDIA drivers: `REGION=IMAGE_OCID,…`. Required",
        "compartment": "The OCID of the compartment. Default: the tenancy",
        "disk_gb": f"{DISK_OPTION}. Default: 128",
    }
    defaults: ClassVar = {"disk_gb": "128"}

    @classmethod
    def facts(cls, secret: str) -> Mapping[str, str]:
        return {"compartment": oracle_fields(secret)["tenancy"]}

    @property
    def regions(self) -> list[str]:
        return list(self.pairs("networks"))

    def _every(self, region: str, path: str, service: str = "", **query: str) -> Asking[list[Any]]:
        """All pages of a list. The token of the next page is in a header."""
        found: list[Any] = []
        page = ""
        while True:
            asked = {"compartmentId": self.needed("compartment"), **query, **({"page": page} if page else {})}
            reply = yield CloudCall(
                method="GET", path=f"{API}{path}", query=asked, region=region, service=service
            )
            if not isinstance(reply.body, list):
                raise TypeError(f"{path} is not a list")
            found += reply.body
            page = reply.next_page
            if not page:
                return found

    def _domains(self, region: str) -> Asking[list[str]]:
        listed = yield from self._every(region, "/availabilityDomains", "identity")
        return [str(each["name"]) for each in listed]

    def check(self) -> Asking[str]:
        self.pairs("images")
        domains = yield from self._domains(self.regions[0])
        return f"Oracle Cloud accepts the key; availability domains in {self.regions[0]}: {len(domains)}"

    def types(self) -> Asking[list[MachineType]]:
        prices = self.set_prices()
        found: dict[tuple[str, str], MachineType] = {}
        for region in self.regions:
            for each in (yield from self._every(region, "/shapes", limit="500")):
                if each["shape"] in prices and each.get("gpus"):
                    made = self._type(region, each, prices[each["shape"]])
                    found[each["shape"], region] = made
        return list(found.values())

    def _type(self, region: str, each: Any, prices: dict[str, int]) -> MachineType:
        words = str(each.get("gpuDescription") or "").replace("®", "").replace("Tensor Core GPU", "")
        return self.machine_type(
            each["shape"],
            region,
            gpu=(words.rpartition("NVIDIA")[2].strip(), 0),
            gpus=int(each["gpus"]),
            vcpus=int(float(each["ocpus"]) * THREADS_PER_OCPU),
            ram_bytes=round(float(each["memoryInGBs"]) * GIB),
            prices=prices,
        )

    def machines(self, mark: str) -> Asking[list[Remote]]:
        found: list[Remote] = []
        for region in self.regions:
            listed = yield from self._every(region, "/instances", limit="1000")
            ours = [each for each in listed if read_tags(mark, each.get("freeformTags") or {})]
            living = [each for each in ours if each["lifecycleState"] != ENDED]
            addresses = (yield from self._addresses(region)) if living else {}
            found += [self._remote(mark, region, each, addresses) for each in living]
        return found

    def _addresses(self, region: str) -> Asking[dict[str, str]]:
        """Public addresses by instance: three listings instead of two calls per machine."""
        subnet = self.pairs("networks")[region]
        reply = yield CloudCall(
            method="GET", path=f"{API}/privateIps", query={"subnetId": subnet, "limit": "1000"}, region=region
        )
        interfaces = {each["id"]: each["vnicId"] for each in reply.body}
        attached = yield from self._every(region, "/vnicAttachments", limit="1000")
        owners = {each["vnicId"]: each["instanceId"] for each in attached if each.get("vnicId")}
        found: dict[str, str] = {}
        for domain in (yield from self._domains(region)):
            query = {"scope": "AVAILABILITY_DOMAIN", "availabilityDomain": domain, "limit": "1000"}
            for each in (yield from self._every(region, "/publicIps", **query)):
                owner = owners.get(interfaces.get(each.get("assignedEntityId") or "", ""), "")
                found[owner] = each["ipAddress"]
        return found

    def rent(self, boot: Boot) -> Asking[Remote]:
        rental = boot.rental
        domains = [rental.zone] if rental.zone else (yield from self._domains(rental.region))

        def rent_in(domain: str) -> Asking[Remote]:
            reply = yield CloudCall(
                method="POST",
                path=f"{API}/instances",
                headers={"opc-retry-token": f"{boot.token}-{domain}".replace(":", "-")[-64:]},
                body=self._body(boot, domain),
                region=rental.region,
                act="launch",
            )
            return self._remote(boot.mark, rental.region, reply.body, {})

        nowhere = f"no availability domain in {rental.region}"
        return (yield from self.in_first_with_room(domains, rent_in, nowhere))

    def _body(self, boot: Boot, domain: str) -> dict[str, Any]:
        region = boot.rental.region
        user_data = base64.b64encode(boot.cloud_config.encode()).decode()
        image = {"sourceType": "image", "imageId": self.pairs("images").get(region, "")}
        preemptible = {"preemptionAction": {"type": "TERMINATE", "preserveBootVolume": False}}
        return {
            "availabilityDomain": domain,
            "compartmentId": self.needed("compartment"),
            "shape": boot.rental.type,
            "displayName": boot.name,
            "freeformTags": boot.tags,
            "metadata": {"ssh_authorized_keys": boot.login_key, "user_data": user_data},
            "createVnicDetails": {"subnetId": self.pairs("networks")[region], "assignPublicIp": True},
            "sourceDetails": {**image, "bootVolumeSizeInGBs": self.disk_gb},
            **({"preemptibleInstanceConfig": preemptible} if boot.rental.mode == "spot" else {}),
        }

    def give_back(self, remote_id: str) -> Asking[None]:
        region, _, id = remote_id.partition("/")
        query = {"preserveBootVolume": "false"}
        yield delete_call(f"{API}/instances/{id}", region=region, query=query)

    def leftovers(self, mark: str) -> Asking[list[Leftover]]:
        """Boot volumes without a machine. Oracle deletes them with it, if all is well. Addresses are never apart."""
        found: list[Leftover] = []
        for region in self.regions:
            listed = yield from self._every(region, "/bootVolumes", limit="1000")
            found += [
                self.loose_disk(
                    f"{region}/{each['id']}", each["sizeInGBs"], name=each["displayName"], token=token
                )
                for each in listed
                if (token := read_name(mark, str(each["displayName"]).removesuffix(BOOT_VOLUME)))
                and each["lifecycleState"] not in (ENDED, "TERMINATING")
            ]
        return found

    def remove_leftover(self, leftover: Leftover) -> Asking[None]:
        region, _, id = leftover.remote_id.partition("/")
        yield delete_call(f"{API}/bootVolumes/{id}", region=region)

    def _remote(self, mark: str, region: str, each: Any, addresses: Mapping[str, str]) -> Remote:
        return self.remote(
            f"{region}/{each['id']}",
            read_tags(mark, each["freeformTags"]),
            SEEN.get(each["lifecycleState"], Seen.PENDING),
            address=addresses.get(each["id"], ""),
            doing=each["lifecycleState"].lower(),
            zone=f"{region}/{each['availabilityDomain']}",
            type=each["shape"],
            since=time_of(each.get("timeCreated")),
            is_spot=bool(each.get("preemptibleInstanceConfig")),
        )
