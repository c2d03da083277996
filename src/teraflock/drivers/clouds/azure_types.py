"""The GPU machine sizes of Azure, with the prices of its public price list. Pure.

Azure's list of sizes has the number of GPUs and not their model: the model is in the name of the size.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from teraflock.base.quantities import GIB
from teraflock.drivers.clouds.calls import Asking, CloudCall
from teraflock.drivers.clouds.cards import card
from teraflock.drivers.clouds.model import micros_of
from teraflock.instance.driver import MachineType

CURRENCY: Final = "USD"
MODELS: Final = (
    (r"_H200_v5$", "H200", 141),
    (r"^Standard_NC\d+\w*_H100_v5$", "H100 NVL", 94),
    (r"_H100_v5$", "H100", 80),
    (r"^Standard_ND96asr_v4$", "A100", 40),
    (r"_A100_v4$", "A100", 80),
    (r"_A10_v5$", "A10", 24),
    (r"_T4_v3$", "T4", 16),
    (r"^Standard_ND40rs_v2$", "V100", 32),
    (r"^Standard_NC\d+rs?_v3$|^Standard_NC\d+s_v3$", "V100", 16),
    (r"^Standard_NC\d+r?s_v2$", "P100", 16),
    (r"^Standard_ND\d+r?s$", "P40", 24),
    (r"^Standard_NV\d+s_v3$", "M60", 8),
)
"""The first pattern that matches counts."""
Prices = dict[tuple[str, str, str], int]
"""By region, size and mode."""


def gpu_types(subscription: str, regions: Sequence[str], disk_bytes: int) -> Asking[list[MachineType]]:
    found: list[MachineType] = []
    for region in regions:
        query = {"api-version": "2019-04-01", "$filter": f"location eq '{region}'"}
        path = f"{subscription}/providers/Microsoft.Compute/skus"
        reply = yield CloudCall(method="GET", path=path, query=query)
        prices = yield from _prices(region)
        made = [
            _type(region, each, prices, disk_bytes)
            for each in reply.body["value"]
            if _is_offered(each, region)
        ]
        found += [each for each in made if each is not None and each.prices]
    return found


def _is_offered(each: Any, region: str) -> bool:
    """Whether the subscription may use a size there."""
    closed = [
        place
        for limit in each.get("restrictions") or ()
        if limit.get("type") == "Location"
        for place in limit.get("values") or ()
    ]
    return each["resourceType"] == "virtualMachines" and region.lower() not in map(str.lower, closed)


def _prices(region: str) -> Asking[Prices]:
    """What Linux machines with GPUs cost. The list is public: no credentials are sent."""
    filter = (
        f"serviceName eq 'Virtual Machines' and armRegionName eq '{region}' and priceType eq 'Consumption'"
        " and startswith(armSkuName, 'Standard_N')"
    )
    found: Prices = {}
    skip = 0
    while True:
        query = {"$filter": filter, **({"$skip": str(skip)} if skip else {})}
        reply = yield CloudCall(
            method="GET", path="/api/retail/prices", query=query, service="prices", signed=False
        )
        items = reply.body["Items"]
        for each in items:
            if mode := _mode(each):
                found[region, each["armSkuName"], mode] = micros_of(each["retailPrice"])
        skip += len(items)
        if not items or not reply.body.get("NextPageLink"):
            return found


def _mode(each: Any) -> str:
    """`on-demand` or `spot`; empty: Windows, low priority, or another unit."""
    words = f"{each.get('productName', '')} {each.get('skuName', '')}"
    if "Windows" in words or "Low Priority" in words or each.get("unitOfMeasure") != "1 Hour":
        return ""
    return "spot" if "Spot" in words else "on-demand"


def _type(region: str, each: Any, prices: Mapping[Any, int], disk_bytes: int) -> MachineType | None:
    able = {one["name"]: one["value"] for one in each.get("capabilities") or ()}
    count = able.get("GPUs", "0")
    named = next(((gpu, size) for pattern, gpu, size in MODELS if re.search(pattern, each["name"])), None)
    if named is None or not count.isdecimal() or int(count) < 1:
        return None
    gpu, memory_bytes = card(*named)
    offered = {mode: prices.get((region, each["name"], mode)) for mode in ("on-demand", "spot")}
    return MachineType(
        name=each["name"],
        region=region,
        gpu=gpu,
        gpus=int(count),
        gpu_memory_bytes=memory_bytes,
        vcpus=int(able["vCPUs"]),
        ram_bytes=round(float(able["MemoryGB"]) * GIB),
        disk_bytes=disk_bytes,
        prices={mode: price for mode, price in offered.items() if price is not None},
        currency=CURRENCY,
    )
