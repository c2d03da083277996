"""The GPU machine types of Google Compute Engine, with prices from the Cloud Billing catalog. Pure.

Google sells cores, memory and GPUs apart: the price of a type is their sum. A type is offered in a mode only if
all three prices are known.
"""

import re
from collections.abc import Sequence
from typing import Any, Final

from teraflock.base.quantities import MIB
from teraflock.drivers.clouds.calls import Asking, CloudCall
from teraflock.drivers.clouds.cards import card
from teraflock.instance.driver import MachineType

COMPUTE: Final = "6F81-5844-456A"
"""Compute Engine in the billing catalog."""
MODES: Final = {"OnDemand": "on-demand", "Preemptible": "spot"}
GPU: Final = re.compile(r"nvidia (?:tesla )?([a-z]+\d+[a-z]*)(?: (\d+)gb)?")
PART: Final = re.compile(r"\b([a-z]\d+[a-z]?) instance (core|ram)")
CURRENCY: Final = "USD"
Prices = dict[tuple[str, str, str], int]
"""By region, mode and part (`g2 core`, `gpu l4`): millionths per hour and unit."""


def aggregated(project: str, name: str, filter: str) -> Asking[list[tuple[str, Any]]]:
    """Everything of a kind in all zones, with its zone."""
    call = CloudCall(method="GET", path=f"{project}/aggregated/{name}", query={"filter": filter})
    found: list[tuple[str, Any]] = []
    token = ""
    while True:
        query = {**call.query, **({"pageToken": token} if token else {})}
        reply = yield CloudCall(method="GET", path=call.path, query=query)
        assert_kind = str(reply.body["kind"])  # an answer of another form must not look like an empty listing
        if not assert_kind.endswith("AggregatedList"):
            raise ValueError(assert_kind)
        for place, scope in (reply.body.get("items") or {}).items():
            found += [(place.removeprefix("zones/"), each) for each in scope.get(name) or ()]
        token = reply.body.get("nextPageToken") or ""
        if not token:
            return found


def gpu_types(project: str, regions: Sequence[str], disk_bytes: int) -> Asking[list[MachineType]]:
    listed = yield from aggregated(project, "machineTypes", "guestCpus>0")
    prices = yield from _prices(regions)
    found: dict[tuple[str, str], MachineType] = {}
    for zone, each in listed:
        region = zone.rpartition("-")[0]
        if region in regions and each.get("accelerators") and (each["name"], region) not in found:
            made = _type(region, each, prices, disk_bytes)
            if made.prices:
                found[each["name"], region] = made
    return list(found.values())


def _prices(regions: Sequence[str]) -> Asking[Prices]:
    found: Prices = {}
    token = ""
    while True:
        query = {"pageSize": "5000", "currencyCode": CURRENCY, **({"pageToken": token} if token else {})}
        reply = yield CloudCall(
            method="GET", path=f"/v1/services/{COMPUTE}/skus", query=query, service="billing"
        )
        for sku in reply.body["skus"]:
            part, mode = _part(sku), MODES.get(sku["category"].get("usageType", ""))
            if part and mode:
                for region in set(sku.get("serviceRegions") or ()) & set(regions):
                    found[region, mode, part] = _micros(sku)
        token = reply.body.get("nextPageToken") or ""
        if not token:
            return found


def _part(sku: Any) -> str:
    """What a price is for: `g2 core`, `g2 ram`, `gpu l4` or `gpu a100 80`; empty: something else."""
    words = str(sku["description"]).lower()
    if any(other in words for other in ("commitment", "reserved", "custom", "dws", "sole tenancy")):
        return ""
    if found := PART.search(words):
        return f"{found[1]} {found[2]}"
    if " gpu" in words and (gpu := GPU.search(words)):
        return f"gpu {gpu[1]} {gpu[2] or ''}".strip()
    return ""


def _micros(sku: Any) -> int:
    """The price beyond the free amount: nanos are billionths of a unit."""
    rate = sku["pricingInfo"][-1]["pricingExpression"]["tieredRates"][-1]["unitPrice"]
    return int(rate.get("units") or 0) * 10**6 + round(int(rate.get("nanos") or 0) / 1000)


def _type(region: str, each: Any, prices: Prices, disk_bytes: int) -> MachineType:
    accelerator = each["accelerators"][0]
    words = str(accelerator["guestAcceleratorType"]).removeprefix("nvidia-").removeprefix("tesla-")
    name, _, memory = words.removesuffix("gb").partition("-")
    memory_gb = int(memory) if memory.isdecimal() else 0
    gpu, memory_bytes = card(name, memory_gb)
    count, cores, ram_mib = accelerator["guestAcceleratorCount"], each["guestCpus"], each["memoryMb"]
    family = str(each["name"]).partition("-")[0]
    offered: dict[str, int] = {}
    for mode in MODES.values():
        parts = [(f"{family} core", cores), (f"{family} ram", ram_mib / 1024)]
        gpu_part = next(
            (
                part
                for part in (f"gpu {name} {memory}".strip(), f"gpu {name}")
                if (region, mode, part) in prices
            ),
            "",
        )
        parts.append((gpu_part, count))
        if all((region, mode, part) in prices for part, _ in parts):
            offered[mode] = round(sum(prices[region, mode, part] * amount for part, amount in parts))
    return MachineType(
        name=each["name"],
        region=region,
        gpu=gpu,
        gpus=int(count),
        gpu_memory_bytes=memory_bytes,
        vcpus=int(cores),
        ram_bytes=int(ram_mib) * MIB,
        disk_bytes=disk_bytes,
        prices=offered,
        currency=CURRENCY,
    )
