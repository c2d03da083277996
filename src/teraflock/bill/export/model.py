"""The vocabulary of FOCUS 1.2: its columns, and the categories of what we charge for."""

from typing import Final, NamedTuple

import msgspec

from teraflock.tenant.model import ProjectId

COLUMNS: Final = (
    "AvailabilityZone", "BilledCost", "BillingAccountId", "BillingAccountName", "BillingAccountType", "BillingCurrency",
    "BillingPeriodEnd", "BillingPeriodStart", "CapacityReservationId", "CapacityReservationStatus", "ChargeCategory",
    "ChargeClass", "ChargeDescription", "ChargeFrequency", "ChargePeriodEnd", "ChargePeriodStart",
    "CommitmentDiscountCategory", "CommitmentDiscountId", "CommitmentDiscountName", "CommitmentDiscountQuantity",
    "CommitmentDiscountStatus", "CommitmentDiscountType", "CommitmentDiscountUnit", "ConsumedQuantity", "ConsumedUnit",
    "ContractedCost", "ContractedUnitPrice", "EffectiveCost", "InvoiceId", "InvoiceIssuerName", "ListCost",
    "ListUnitPrice", "PricingCategory", "PricingCurrency", "PricingCurrencyContractedUnitPrice",
    "PricingCurrencyEffectiveCost", "PricingCurrencyListUnitPrice", "PricingQuantity", "PricingUnit", "ProviderName",
    "PublisherName", "RegionId", "RegionName", "ResourceId", "ResourceName", "ResourceType", "ServiceCategory",
    "ServiceName", "ServiceSubcategory", "SkuId", "SkuMeter", "SkuPriceDetails", "SkuPriceId", "SubAccountId",
    "SubAccountName", "SubAccountType", "Tags",
)  # fmt: skip

Row = dict[str, str]


class BillingAccount(msgspec.Struct, frozen=True, kw_only=True):
    """The customer and the provider of a bill."""

    issuer: str = "Teraflock"
    organisation_id: str
    organisation: str = ""
    """Looked up if empty."""
    project_id: ProjectId
    project: str
    currency: str = ""
    invoice: str = ""


class Service(NamedTuple):
    """A service has one category and one subcategory."""

    name: str
    category: str
    subcategory: str


INSTANCES: Final = Service("Instances", "Compute", "Virtual Machines")
DISKS: Final = Service("Disks", "Storage", "Block Storage")
SNAPSHOTS: Final = Service("Snapshots", "Storage", "Backup Storage")
NETWORK: Final = Service("Network", "Networking", "Network Infrastructure")
OTHER: Final = Service("Account", "Other", "Other (Other)")


class ChargePart(NamedTuple):
    """One priced part of usage, in the order of `Amounts`."""

    name: str
    unit: str
    meter: str
    service: Service
    in_bytes: bool = False


PARTS: Final = (
    ChargePart("gpu", "GPU-Hours", "GPU time", INSTANCES),
    ChargePart("vcpu", "vCPU-Hours", "vCPU time", INSTANCES),
    ChargePart("ram", "GiB-Hours", "Memory held", INSTANCES, in_bytes=True),
    ChargePart("disk", "GiB-Hours", "Disk held", DISKS, in_bytes=True),
    ChargePart("snapshot", "GiB-Hours", "Snapshots held", SNAPSHOTS, in_bytes=True),
    ChargePart("egress", "GiB", "Outgoing traffic", NETWORK, in_bytes=True),
    ChargePart("minimum", "Runs", "Minimum charge of a run", INSTANCES),
)


def service_columns(service: Service) -> Row:
    return {
        "ServiceName": service.name,
        "ServiceCategory": service.category,
        "ServiceSubcategory": service.subcategory,
    }
