"""Quotas and usage on the wire."""

from teraflock.base.filling import filled
from teraflock.catalog.cards import cards_by_id
from teraflock.catalog.names import find_cards
from teraflock.tenant.model import (
    Organisation,
    OrganisationQuota,
    Quota,
)
from teraflock.tenant.quota.rules import QuotaAmounts
from teraflock.wire.quota import (
    OrganisationQuotaShape,
    OrganisationUsage,
    QuotaShape,
    UsageAnswer,
)


def quota_from(shape: QuotaShape) -> Quota:
    """Resolve the names of GPU models. A name that matches several limits each of them; an unknown name is refused."""
    return filled(Quota, shape, gpus=_gpus_from(shape))


def organisation_quota_from(shape: OrganisationQuotaShape) -> OrganisationQuota:
    return filled(OrganisationQuota, shape, gpus=_gpus_from(shape))


def _gpus_from(shape: QuotaShape) -> dict[str, int]:
    return {id: limit for name, limit in shape.gpus.items() for id in _cards_meant(name)}


def _cards_meant(name: str) -> list[str]:
    card, _, profile = name.partition(":")  # the name of a slice has its card and its profile
    if card in cards_by_id():
        return [name]
    return [f"{each.id}:{profile}" if profile else each.id for each in find_cards(card)]


def quota_shape(quota: Quota) -> QuotaShape:
    return filled(QuotaShape, quota)


def usage_answer(used: QuotaAmounts, quota: Quota, whole: OrganisationUsage | None) -> UsageAnswer:
    return filled(UsageAnswer, used, quota=quota_shape(quota), organisation=whole)


def organisation_usage(
    organisation: Organisation, used: QuotaAmounts, quota: OrganisationQuota
) -> OrganisationUsage:
    shape = filled(OrganisationQuotaShape, quota)
    return filled(OrganisationUsage, used, id=organisation.id, name=organisation.name, quota=shape)
