"""Google Compute Engine: virtual machines with cloud-init, stop and start, and spot. API `compute/v1`.

A launch is an operation that may fail after it was accepted, so it is looked at until it is done. Capacity differs
between the zones of a region: all zones that have the machine type are tried in turn. The machine's name contains the
launch token and is unique in its zone. Only types that come with GPUs (A2, A3, G2 …) are offered.
"""

import uuid
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, ClassVar, Final

from teraflock.drivers.clouds.calls import GONE, Asking, CloudCall, CloudReply, delete_call
from teraflock.drivers.clouds.errors import CannotDo, ErrorCodes, error_of, said
from teraflock.drivers.clouds.gce_types import aggregated, gpu_types
from teraflock.drivers.clouds.marks import MARK, Boot, plain, read_name
from teraflock.drivers.clouds.model import DISK_OPTION, CloudApi, Pace
from teraflock.drivers.clouds.notices import GCE_NOTICE
from teraflock.drivers.clouds.tokens import GoogleSigner, service_account
from teraflock.drivers.rented import Remote
from teraflock.instance.account.model import Leftover
from teraflock.instance.driver import Capability, MachineType, Seen

IMAGE: Final = (
    "projects/deeplearning-platform-release/global/images/family/common-cu128-ubuntu-2204-nvidia-570"
)
LOOKS_MAX: Final = 3
"""How often a launch is looked at. Beyond that it is still running, and the listing shows how it ends."""
SEEN: Final = {
    "PROVISIONING": Seen.PENDING,
    "STAGING": Seen.PENDING,
    "RUNNING": Seen.RUNNING,
    "STOPPING": Seen.PENDING,
    "SUSPENDING": Seen.PENDING,
    "SUSPENDED": Seen.STOPPED,
    "REPAIRING": Seen.PENDING,
    "TERMINATED": Seen.STOPPED,
}


class GceCloud(CloudApi):
    kind = "gcp"
    title = "Google Cloud"
    signs = GoogleSigner
    base_url = "https://compute.googleapis.com/compute/v1"
    services: ClassVar = {
        "token": "https://oauth2.googleapis.com",
        "billing": "https://cloudbilling.googleapis.com",
    }
    login = "ubuntu"
    pace = Pace(call_seconds=0.1, launch_seconds=0.5)
    capabilities = frozenset({Capability.STOP})
    boot_time_max = timedelta(minutes=16)
    types_age_max = timedelta(hours=6)
    notice = GCE_NOTICE
    has_time_limit = True
    codes = ErrorCodes(
        no_room=[
            "ZONE_RESOURCE_POOL_EXHAUSTED*",
            "insufficientCapacity",
            "UNSUPPORTED_OPERATION",
            "STOCKOUT",
        ],
        quota=["quotaExceeded", "QUOTA_EXCEEDED"],
        money=["billingNotEnabled", "billing account", "accountDisabled"],
        busy=[
            "rateLimitExceeded",
            "RESOURCE_NOT_READY",
            "RESOURCE_OPERATION_RATE_EXCEEDED",
            "userRateLimitExceeded",
        ],
        access=["IAM_PERMISSION_DENIED", "invalid_grant", "authError"],
    )
    options: ClassVar = {
        "project": "The project. Default: the one of the service account",
        "regions": "Regions to use, separated by commas. Default: `us-central1,us-east1`",
        "image": f"The image or image family, as a path. Default: `{IMAGE}`",
        "network": "The network. Default: `global/networks/default`",
        "disk_gb": f"{DISK_OPTION}. Default: 128",
    }
    defaults: ClassVar = {
        "regions": "us-central1,us-east1",
        "image": IMAGE,
        "network": "global/networks/default",
        "disk_gb": "128",
    }

    @classmethod
    def facts(cls, secret: str) -> Mapping[str, str]:
        return {"project": service_account(secret)["project_id"]}

    @property
    def _project(self) -> str:
        return f"/projects/{self.needed('project')}"

    def check(self) -> Asking[str]:
        yield CloudCall(method="GET", path=f"{self._project}/regions/{self.regions[0]}")
        return f"Google Cloud accepts the key; regions: {', '.join(self.regions)}"

    def types(self) -> Asking[list[MachineType]]:
        found = yield from gpu_types(self._project, self.regions, self.disk_bytes)
        return found

    def machines(self, mark: str) -> Asking[list[Remote]]:
        listed = yield from aggregated(self._project, "instances", f"labels.{MARK}={mark}")
        found = (self._remote(mark, zone, each) for zone, each in listed)
        return [each for each in found if each is not None]

    def rent(self, boot: Boot) -> Asking[Remote]:
        zones = [boot.rental.zone] if boot.rental.zone else (yield from self._zones(boot))
        yield from self._firewall(boot.mark)

        def rent_in(zone: str) -> Asking[Remote]:
            yield from self._insert(boot, zone)
            spot = boot.rental.mode == "spot"
            return self.remote(f"{zone}/{boot.name}", boot.token, Seen.PENDING, zone=zone, is_spot=spot)

        nowhere = f"no zone of {boot.rental.region} has `{boot.rental.type}`"
        return (yield from self.in_first_with_room(zones, rent_in, nowhere))

    def _zones(self, boot: Boot) -> Asking[list[str]]:
        region, name = boot.rental.region, boot.rental.type
        listed = yield from aggregated(self._project, "machineTypes", f"name={name}")
        return sorted(zone for zone, each in listed if zone.startswith(f"{region}-") and each["name"] == name)

    def _insert(self, boot: Boot, zone: str) -> Asking[None]:
        id = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{boot.label}/{zone}"))
        call = CloudCall(
            method="POST",
            path=f"{self._project}/zones/{zone}/instances",
            query={"requestId": id},
            body=self._body(boot, zone),
            act="launch",
            accepts=frozenset({409}),
        )
        reply = yield call
        if reply.status == 409:
            if self.said(reply)[0] != "alreadyExists":
                raise self.error(call, reply)
            return
        for _ in range(LOOKS_MAX):
            self._raise_error_of(reply)
            if reply.body.get("status") == "DONE":
                return
            reply = yield CloudCall(
                method="GET", path=f"{self._project}/zones/{zone}/operations/{reply.body['name']}"
            )
        self._raise_error_of(reply)

    def _raise_error_of(self, operation: CloudReply) -> None:
        errors = (operation.body.get("error") or {}).get("errors")
        if errors:
            code, words = str(errors[0].get("code", "")), str(errors[0].get("message", ""))
            raise error_of(self.title, self.codes, 400, code, words)

    def _body(self, boot: Boot, zone: str) -> dict[str, Any]:
        spot = boot.rental.mode == "spot"
        limit = None if boot.ends_at is None else {"terminationTime": boot.ends_at.isoformat()}
        metadata = {
            "user-data": boot.cloud_config,
            "ssh-keys": f"{self.login}:{boot.login_key}",
            "block-project-ssh-keys": "TRUE",
        }
        disk = {
            "sourceImage": self.option("image"),
            "diskSizeGb": str(self.disk_gb),
            "diskType": f"zones/{zone}/diskTypes/pd-balanced",
            "labels": {MARK: boot.mark},
        }
        external = [{"type": "ONE_TO_ONE_NAT", "name": "External NAT"}]
        return {
            "name": boot.name,
            "machineType": f"zones/{zone}/machineTypes/{boot.rental.type}",
            "disks": [{"boot": True, "autoDelete": True, "initializeParams": disk}],
            "networkInterfaces": [{"network": self.option("network"), "accessConfigs": external}],
            "tags": {"items": [_firewall_name(boot.mark)]},
            "metadata": {"items": [{"key": key, "value": value} for key, value in metadata.items()]},
            "labels": {MARK: boot.mark},
            "scheduling": {
                "provisioningModel": "SPOT" if spot else "STANDARD",
                "onHostMaintenance": "TERMINATE",
                "automaticRestart": False,
                **({"instanceTerminationAction": "DELETE"} if spot or limit else {}),
                **(limit or {}),
            },
        }

    def _firewall(self, mark: str) -> Asking[None]:
        """Admit SSH to our machines, and nothing else, unless the rule exists."""
        name = _firewall_name(mark)
        found = yield CloudCall(method="GET", path=f"{self._project}/global/firewalls/{name}", accepts=GONE)
        if found.status == 404:
            rule = {
                "name": name,
                "network": self.option("network"),
                "direction": "INGRESS",
                "sourceRanges": ["0.0.0.0/0"],
                "targetTags": [name],
                "allowed": [{"IPProtocol": "tcp", "ports": ["22"]}],
            }
            accepts = frozenset({409})
            path = f"{self._project}/global/firewalls"
            yield CloudCall(method="POST", path=path, body=rule, act="change", accepts=accepts)

    def give_back(self, remote_id: str) -> Asking[None]:
        yield delete_call(self._path(remote_id))

    def stop(self, remote_id: str) -> Asking[None]:
        yield CloudCall(method="POST", path=f"{self._path(remote_id)}/stop", act="change")

    def start(self, remote_id: str) -> Asking[None]:
        yield CloudCall(method="POST", path=f"{self._path(remote_id)}/start", act="change")

    def _path(self, remote_id: str) -> str:
        zone, _, name = remote_id.partition("/")
        if not zone or not name:
            raise CannotDo(f"`{remote_id[:80]}` is not a machine of Google Cloud")
        return f"{self._project}/zones/{zone}/instances/{name}"

    def leftovers(self, mark: str) -> Asking[list[Leftover]]:
        listed = yield from aggregated(self._project, "disks", f"labels.{MARK}={mark}")
        disks = [
            self.loose_disk(
                f"{zone}/{each['name']}",
                each["sizeGb"],
                name=each["name"],
                token=read_name(mark, each["name"]),
            )
            for zone, each in listed
            if not each.get("users")
        ]
        name = _firewall_name(mark)
        found = yield CloudCall(method="GET", path=f"{self._project}/global/firewalls/{name}", accepts=GONE)
        rules = [Leftover(kind="firewall-rule", remote_id=name, name=name)] if found.status < 400 else []
        return disks + rules

    def remove_leftover(self, leftover: Leftover) -> Asking[None]:
        zone, _, name = leftover.remote_id.partition("/")
        is_disk = leftover.kind == "disk"
        place = f"zones/{zone}/disks/{name}" if is_disk else f"global/firewalls/{leftover.remote_id}"
        yield delete_call(f"{self._project}/{place}")

    def said(self, reply: CloudReply) -> tuple[str, str]:
        """The reason in the list of errors is more exact than the status in `code`."""
        error = reply.body.get("error") if isinstance(reply.body, dict) else None
        listed = error.get("errors") if isinstance(error, dict) else None
        code, words = said({"error": listed} if listed else reply.body)
        reason = str(listed[0].get("reason", "")) if listed else code
        return reason, words or reply.text

    def _remote(self, mark: str, zone: str, each: Any) -> Remote | None:
        token = read_name(mark, each["name"])
        seen = SEEN.get(each["status"], Seen.PENDING)
        if not token:
            return None
        interfaces = each.get("networkInterfaces") or [{}]
        external = interfaces[0].get("accessConfigs") or [{}]
        return self.remote(
            f"{zone}/{each['name']}",
            token,
            seen,
            address=external[0].get("natIP", ""),
            doing=each["status"].lower(),
            zone=zone,
            type=str(each["machineType"]).rpartition("/")[2],
            since=datetime.fromisoformat(each["creationTimestamp"])
            if each.get("creationTimestamp")
            else None,
            is_spot=(each.get("scheduling") or {}).get("provisioningModel") == "SPOT",
        )


def _firewall_name(mark: str) -> str:
    return f"teraflock-{plain(mark)}"
