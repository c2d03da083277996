"""The GPU machine types of Tencent Cloud and what they cost now, one entry per zone and mode. Pure."""

from typing import Any, Final

from teraflock.base.quantities import GIB
from teraflock.drivers.clouds.calls import Asking, CloudCall
from teraflock.drivers.clouds.model import CloudApi, micros_of
from teraflock.instance.driver import MachineType

MODES: Final = {"POSTPAID_BY_HOUR": "on-demand", "SPOTPAID": "spot"}
CARDS: Final = {
    "GN6": ("P40", 24), "GN6S": ("P4", 8), "GN7": ("T4", 16), "GN8": ("P40", 24), "GN10X": ("V100", 32),
    "GN10Xp": ("V100", 32), "GT4": ("A100", 40), "PNV4": ("A10", 24),
}  # fmt: skip
"""The GPU of each family: the API has only the count."""


def action(region: str, name: str, body: Any, **more: Any) -> CloudCall:
    headers = {"X-TC-Action": name, "X-TC-Version": "2017-03-12", "X-TC-Region": region}
    return CloudCall(method="POST", path="/", headers=headers, body=body, region=region, **more)


def offered(region: str, type: str = "") -> Asking[list[Any]]:
    """What is for sale in a region, one entry per zone, type and mode."""
    filters = [{"Name": "instance-charge-type", "Values": list(MODES)}]
    filters += [{"Name": "instance-type", "Values": [type]}] if type else []
    reply = yield action(region, "DescribeZoneInstanceConfigInfos", {"Filters": filters})
    items = reply.body["Response"]["InstanceTypeQuotaSet"]
    return [each for each in items if each["Status"] == "SELL" and each.get("Gpu")]


def read_type(region: str, each: Any, before: MachineType | None, cloud: CloudApi) -> MachineType | None:
    """A type with the price of one more zone or mode. None: its GPU is unknown, or a part of one."""
    family = CARDS.get(each["InstanceFamily"])
    count = float(each.get("GpuCount") or each["Gpu"])
    if family is None or count != int(count):
        return None
    price = micros_of(each["Price"].get("UnitPriceDiscount") or each["Price"]["UnitPrice"])
    prices = {**(before.prices if before else {})}
    mode = MODES[each["InstanceChargeType"]]
    prices[mode] = min(prices.get(mode, price), price)
    return cloud.machine_type(
        each["InstanceType"],
        region,
        gpu=family,
        gpus=int(count),
        vcpus=int(each["Cpu"]),
        ram_bytes=int(each["Memory"]) * GIB,
        prices=prices,
    )
