"""The GPU machine types of EC2, with on-demand prices of the pricing service and spot prices of now. Pure."""

import json
from collections.abc import Mapping
from typing import Any, Final

from teraflock.base.money import parse_micros
from teraflock.base.quantities import MIB
from teraflock.drivers.clouds.calls import Asking, CloudCall
from teraflock.drivers.clouds.cards import card
from teraflock.instance.driver import MachineType

PRICES_IN: Final = "us-east-1"
"""The region of the pricing service."""
CURRENCY: Final = "USD"
_GPU_TYPES: Final = {"Filters": [{"Name": "instance-type", "Values": ["g*", "p*"]}]}


def gpu_types(region: str, disk_bytes: int) -> Asking[list[MachineType]]:
    """The types with GPUs in a region that have a price."""
    kinds = yield from every(ec2_call(region, "DescribeInstanceTypes", _GPU_TYPES), "InstanceTypes")
    prices = yield from _on_demand_prices(region)
    spot = yield from _spot_prices(region, [each["InstanceType"] for each in kinds])
    found = [_type(each, region, prices, spot, disk_bytes) for each in kinds]
    return [each for each in found if each.gpus and each.prices]


def ec2_call(region: str, operation: str, body: Mapping[str, Any], **more: Any) -> CloudCall:
    return CloudCall(method=f"ec2.{operation}", path=region, body=body, **more)


def every(call: CloudCall, name: str) -> Asking[list[Any]]:
    """All pages of a listing."""
    found: list[Any] = []
    token = ""
    while True:
        body = {**call.body, "NextToken": token} if token else call.body
        reply = yield CloudCall(method=call.method, path=call.path, body=body)
        found += reply.body[name]
        token = reply.body.get("NextToken") or ""
        if not token:
            return found


def _on_demand_prices(region: str) -> Asking[dict[str, int]]:
    """Micro-units per hour by type. Empty if the key may not read prices."""
    fields = {
        "regionCode": region, "instanceFamily": "GPU instance", "operatingSystem": "Linux", "tenancy": "Shared",
        "preInstalledSw": "NA", "capacitystatus": "Used",
    }  # fmt: skip
    filters = [{"Type": "TERM_MATCH", "Field": name, "Value": value} for name, value in fields.items()]
    prices: dict[str, int] = {}
    token = ""
    while True:
        body = {"ServiceCode": "AmazonEC2", "Filters": filters, **({"NextToken": token} if token else {})}
        call = CloudCall(
            method="pricing.GetProducts", path=PRICES_IN, body=body, accepts=frozenset({400, 403})
        )
        reply = yield call
        if reply.status >= 400:
            return prices
        for text in reply.body["PriceList"]:
            product = json.loads(text)
            for term in product["terms"].get("OnDemand", {}).values():
                for each in term["priceDimensions"].values():
                    amount = parse_micros(each["pricePerUnit"]["USD"].rstrip("0").rstrip(".") or "0")
                    prices[product["product"]["attributes"]["instanceType"]] = amount
        token = reply.body.get("NextToken") or ""
        if not token:
            return {name: price for name, price in prices.items() if price}


def _spot_prices(region: str, names: list[str]) -> Asking[dict[str, int]]:
    """The lowest price now in any zone, by type."""
    if not names:
        return {}
    body = {"InstanceTypes": names, "ProductDescriptions": ["Linux/UNIX"], "MaxResults": 1000}
    rows = yield CloudCall(method="ec2.DescribeSpotPriceHistory", path=region, body=body)
    newest: dict[tuple[str, str], Any] = {}
    for each in rows.body["SpotPriceHistory"]:
        key = (each["InstanceType"], each["AvailabilityZone"])
        if key not in newest or each["Timestamp"] > newest[key]["Timestamp"]:
            newest[key] = each
    prices: dict[str, int] = {}
    for (name, _), each in newest.items():
        price = round(float(each["SpotPrice"]) * 10**6)
        prices[name] = min(prices.get(name, price), price)
    return prices


def _type(
    each: Any, region: str, prices: Mapping[str, int], spot: Mapping[str, int], disk_bytes: int
) -> MachineType:
    gpus = (each.get("GpuInfo") or {}).get("Gpus") or []
    name = each["InstanceType"]
    memory_mib = int(gpus[0]["MemoryInfo"]["SizeInMiB"]) if gpus else 0
    gpu, _ = card(str(gpus[0]["Name"]) if gpus else "", round(memory_mib / 1024))
    offered = {"on-demand": prices.get(name), "spot": spot.get(name)}
    return MachineType(
        name=name,
        region=region,
        gpu=gpu,
        gpus=sum(int(one["Count"]) for one in gpus),
        gpu_memory_bytes=memory_mib * MIB,
        vcpus=int(each["VCpuInfo"]["DefaultVCpus"]),
        ram_bytes=int(each["MemoryInfo"]["SizeInMiB"]) * MIB,
        disk_bytes=disk_bytes,
        prices={mode: price for mode, price in offered.items() if price is not None},
        currency=CURRENCY,
    )
